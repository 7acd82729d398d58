package org.gradientsync.core.ranks;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import org.gradientsync.core.backend.HostBuffers;
import org.gradientsync.core.local.LocalWorld;
import org.gradientsync.local.LocalRanks;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** How short messages reach their ranks. */
class MailboxTest {
  private static final int RANKS = 3;

  @Test
  void eachRankReadsItsMessagesInOrder() {
    LocalRanks.run(
        RANKS,
        sync -> {
          try (Mailbox mailbox = mailbox()) {
            int next = (sync.rank() + 1) % RANKS;
            int previous = (sync.rank() + 2) % RANKS;
            for (int i = 0; i < 2; i++) {
              mailbox.send(message(sync.rank(), i), next);
            }
            sync.barrier();
            for (int i = 0; i < 2; i++) {
              assertEquals(message(previous, i), mailbox.next());
            }
            assertNull(mailbox.next());
            sync.barrier();
          }
        });
  }

  private static ByteBuffer message(int sender, int number) {
    return HostBuffers.allocate(2 * Integer.BYTES).putInt(0, sender).putInt(4, number);
  }

  /** All ranks look when one of them is late. */
  @ParameterizedTest
  @ValueSource(ints = {2, 200})
  void lookingAllocatesNothingPerPeer(int ranks) {
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    LocalRanks.run(
        ranks,
        sync -> {
          look(); // one-time allocations
          long before = threads.getCurrentThreadAllocatedBytes();
          look();
          long bytes = threads.getCurrentThreadAllocatedBytes() - before;
          assertTrue(bytes < 5_000, "bytes=" + bytes);
        });
  }

  private static void look() {
    try (Mailbox mailbox = mailbox()) {
      assertNull(mailbox.next());
    }
  }

  private static Mailbox mailbox() {
    GroupTransport messages = LocalWorld.current().orElseThrow().messages();
    return new Mailbox(messages, Channel.SURVIVORS, 2 * Integer.BYTES);
  }
}
