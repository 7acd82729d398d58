package org.gradientsync.core.collectives.messages;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.IntBuffer;
import java.util.concurrent.atomic.AtomicInteger;
import org.gradientsync.core.group.OtherWorld;
import org.gradientsync.core.group.ProcessGroup;
import org.gradientsync.core.ranks.Channel;
import org.gradientsync.local.LocalRanks;
import org.gradientsync.spi.Message;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class GroupCommunicatorTest {
  @ParameterizedTest
  @ValueSource(ints = {1, 5, 8, 9})
  void broadcastsGoAlongATree(int ranks) {
    int rounds = Integer.SIZE - Integer.numberOfLeadingZeros(ranks - 1);
    LocalRanks.run(
        ranks,
        own -> {
          Counting world = new Counting();
          try (ProcessGroup group = ProcessGroup.world(world)) {
            GroupCommunicator communicator = new GroupCommunicator(group);
            for (int root = 0; root < ranks; root++) {
              int[] data = {own.rank(), 10 * own.rank(), 7};
              world.sent.set(0);
              communicator.broadcast(IntBuffer.wrap(data), root);
              assertArrayEquals(new int[] {root, 10 * root, 7}, data);
              assertTrue(world.sent.get() <= rounds, "messages: " + world.sent);
              communicator.barrier();
            }
          }
        });
  }

  /** Counts the messages with elements that are started. */
  private static final class Counting extends OtherWorld {
    private final AtomicInteger sent = new AtomicInteger();

    @Override
    public Message sender(ByteBuffer memory, int peer, int tag) {
      Message message = super.sender(memory, peer, tag);
      return tag % (1 << Channel.BITS) != Channel.DATA
          ? message
          : beforeStarts(message, sent::incrementAndGet);
    }
  }
}
