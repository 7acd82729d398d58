package org.gradientsync.cuda.internal.peer;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.ByteBuffer;
import org.gradientsync.core.backend.HostBuffers;
import org.junit.jupiter.api.Test;

class PeerProgressTest {
  @Test
  void whatARankSaysIsToldInOneLine() {
    ByteBuffer[] memory = {HostBuffers.allocate(PeerProgress.BYTES)};
    PeerProgress progress = new PeerProgress(memory, 0, 1);
    progress.enqueued(3, 2);
    assertEquals("enqueued=3", progress.textOf(0));
    progress.say("waits\u2028for\nyou");
    assertEquals("waits for you, enqueued=3", progress.textOf(0));
  }
}
