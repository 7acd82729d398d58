package org.gradientsync.cuda.internal.peer;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import org.gradientsync.core.backend.HostBuffers;
import org.junit.jupiter.api.Test;

class PeerProgressTest {
  @Test
  void whatARankSaysIsToldInOneLine() {
    ByteBuffer[] memory = {HostBuffers.allocate(PeerProgress.BYTES)};
    PeerProgress progress = new PeerProgress(memory, 0, 1);
    progress.publishEnqueued(3, 2);
    assertEquals("enqueued=3", progress.textOf(0));
    progress.say("waits\u2028for\nyou");
    assertEquals("waits for you, enqueued=3", progress.textOf(0));
  }

  @Test
  void buffersAreRegisteredIfAllRanksHaveOneNumber() {
    ByteBuffer[] memory = {
      HostBuffers.allocate(PeerProgress.BYTES), HostBuffers.allocate(PeerProgress.BYTES)
    };
    PeerProgress first = new PeerProgress(memory, 0, 2);
    PeerProgress second = new PeerProgress(memory, 1, 2);
    assertFalse(first.isRegistered(0)); // no number
    first.publishRegistration(0, 7);
    assertFalse(first.isRegistered(0));
    assertFalse(second.isRegistered(0));
    second.publishRegistration(0, 7);
    assertTrue(first.isRegistered(0));
    assertTrue(second.isRegistered(0));
    first.publishRegistration(1, 8); // before the other one has looked
    assertTrue(second.isRegistered(0));
    second.publishRegistration(1, 9);
    assertFalse(first.isRegistered(1));
    assertFalse(second.isRegistered(1));
  }
}
