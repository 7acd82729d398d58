package org.gradientsync.core.collectives.messages;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.IntBuffer;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.gradientsync.core.group.OtherWorld;
import org.gradientsync.core.group.ProcessGroup;
import org.gradientsync.core.ranks.Channel;
import org.gradientsync.local.LocalRanks;
import org.gradientsync.spi.CallInterceptor;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.CollectiveCall.Kind;
import org.gradientsync.spi.Message;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
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

  @ParameterizedTest
  @CsvSource({"1000, 0", "2000000, 2", "70000000, 3"}) // the last in two messages
  void ranksMeetBeforeEachMessageIfTheyGatherManyBytes(int bytes, int barriers) {
    LocalRanks.run(
        3,
        own -> {
          Recording calls = new Recording();
          try (ProcessGroup group = ProcessGroup.world(new OtherWorld())) {
            byte[] mine = new byte[own.rank() == 1 ? bytes : 10];
            mine[mine.length - 1] = (byte) own.rank();
            List<byte[]> all = new GroupCommunicator(group).intercepted(calls).gather(mine, 0);
            List<Kind> expected = new ArrayList<>(Collections.nCopies(barriers, Kind.BARRIER));
            expected.add(0, Kind.ALL_GATHER); // of the numbers
            assertEquals(expected, calls.kinds);
            assertEquals(own.rank() == 0 ? 3 : 0, all.size());
            for (int rank = 0; rank < all.size(); rank++) {
              byte[] part = all.get(rank);
              assertEquals(rank == 1 ? bytes : 10, part.length);
              assertEquals(rank, part[part.length - 1]);
            }
          }
        });
  }

  /** Records the collectives. */
  private static final class Recording implements CallInterceptor {
    private final List<Kind> kinds = new ArrayList<>();

    @Override
    public CollectiveCall beforeCall(CollectiveCall call, int ranks) {
      kinds.add(call.kind());
      return call;
    }

    @Override
    public void beforeCopy() {
      // nobody copies
    }
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
