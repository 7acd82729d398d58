package org.gradientsync.core.group;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.DoubleBuffer;
import java.nio.LongBuffer;
import java.util.stream.LongStream;
import org.gradientsync.core.collectives.messages.GroupCommunicator;
import org.gradientsync.core.ranks.Channel;
import org.gradientsync.local.LocalRanks;
import org.gradientsync.spi.Message;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The cost of an all-gather, and its results for all numbers of ranks. */
@Timeout(120)
class ExchangeTest {
  private static final int CHANNELS = 1 << Channel.BITS;

  /** Counts messages with data. */
  private static final class CountingWorld extends OtherWorld {
    private int sent;

    @Override
    public Message sender(ByteBuffer memory, int peer, int tag) {
      sent += tag % CHANNELS == Channel.DATA ? 1 : 0;
      return super.sender(memory, peer, tag);
    }
  }

  @Test
  void allGatherSendsFewMessagesPerRank() {
    LocalRanks.run(
        33,
        sync -> {
          CountingWorld transport = new CountingWorld();
          try (ProcessGroup group = ProcessGroup.world(transport)) {
            allGather(group, 20);
            // 6 steps of at most two messages: blocks that wrap around need two
            assertTrue(transport.sent <= 12, () -> "messages: " + transport.sent);
            sync.barrier();
          }
        });
  }

  @Test
  void blocksAreInRankOrder() {
    for (int ranks = 1; ranks <= 9; ranks++) {
      LocalRanks.run(
          ranks,
          sync -> {
            try (ProcessGroup group = ProcessGroup.world(new OtherWorld())) {
              allGather(group, 3);
              sync.barrier();
            }
          });
    }
  }

  @Test
  void blocksMayExceedAMessage() {
    LocalRanks.run(
        3,
        sync -> {
          try (ProcessGroup group = ProcessGroup.world(new OtherWorld())) {
            allGather(group, 150_000);
            sync.barrier();
          }
        });
  }

  @Test
  void onlyTheRangesBetweenPositionAndLimitAreTouched() {
    LocalRanks.run(
        5,
        sync -> {
          double[] send = {-1, sync.rank() + 0.5, -1};
          double[] receive = {-2, 0, 0, 0, 0, 0, -2};
          sync.communicator()
              .allGather(DoubleBuffer.wrap(send, 1, 1), DoubleBuffer.wrap(receive, 1, 5));
          assertArrayEquals(new double[] {-2, 0.5, 1.5, 2.5, 3.5, 4.5, -2}, receive);
        });
  }

  private static void allGather(ProcessGroup group, int count) {
    long[] own = LongStream.range(0, count).map(i -> i * 100 + group.rank()).toArray();
    long[] all = new long[group.size() * count];
    new GroupCommunicator(group).allGather(LongBuffer.wrap(own), LongBuffer.wrap(all));
    long[] expected =
        LongStream.range(0, all.length).map(i -> i % count * 100 + i / count).toArray();
    assertArrayEquals(expected, all);
  }
}
