package org.gradientsync.cuda.internal.peer;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.when;

import org.gradientsync.core.host.HostBuffers;
import org.gradientsync.core.matching.NodeMemory;
import org.junit.jupiter.api.Test;

class PeerProgressTest {
  @Test
  void whatARankSaysIsToldInOneLine() {
    NodeMemory memory = mock(NodeMemory.class);
    when(memory.of(0)).thenReturn(HostBuffers.allocate(PeerProgress.BYTES));
    PeerProgress progress = new PeerProgress(memory, 0, 1);
    progress.enqueued(3, 2);
    assertEquals("enqueued=3", progress.textOf(0));
    progress.say("waits\u2028for\nyou");
    assertEquals("waits for you, enqueued=3", progress.textOf(0));
  }
}
