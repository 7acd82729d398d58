package org.gradientsync.core.collectives.messages;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicIntegerArray;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.MismatchedCallException;
import org.gradientsync.NotFiniteException;
import org.gradientsync.ReduceOp;
import org.gradientsync.core.group.OtherWorld;
import org.gradientsync.core.group.ProcessGroup;
import org.gradientsync.core.host.HostDevice;
import org.gradientsync.core.ranks.Channel;
import org.gradientsync.local.LocalRanks;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.Message;
import org.gradientsync.spi.Settings;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Contributions that travel with the messages of the rendezvous. */
@Timeout(60)
class InlinePayloadTest {
  private static final int RANKS = 3;
  private static final Settings MESSAGES = new Settings(Map.of("dev.rendezvous", "messages"));
  private static final int FITS = RANKS * (128 << 10) / Float.BYTES;

  /** Messages that have been prepared for sending, by their channel. */
  private final AtomicIntegerArray prepared = new AtomicIntegerArray(1 << 13);

  /** Messages that have been sent, by their channel. */
  private final AtomicIntegerArray sent = new AtomicIntegerArray(1 << 13);

  /** What a rank does with a reducer for FLOAT32 buffers in host memory. */
  private interface Body {
    void run(Rank rank) throws Exception;
  }

  private record Rank(
      ProcessGroup group, HostDevice device, MessageReducer reducer, GradientSync others) {
    DeviceBuffer allocate(int count) {
      return device.allocate(DataType.FLOAT32, count);
    }

    /** Reduces in place, and checks all bits. */
    void sum(DeviceBuffer buffer, int first) {
      int count = (int) buffer.count();
      float[] expected = numbers(0, first, count);
      for (int rank = 1; rank < group.size(); rank++) {
        float[] next = numbers(rank, first, count);
        for (int i = 0; i < count; i++) {
          expected[i] += next[i];
        }
      }
      buffer.copyFrom(numbers(group.rank(), first, count));
      reducer.run(CollectiveCall.allReduce(buffer, ReduceOp.SUM));
      float[] actual = new float[count];
      buffer.copyTo(actual);
      int different = Arrays.mismatch(expected, actual);
      assertEquals(-1, different, () -> "count=" + count + ", first=" + first);
    }
  }

  /** Values of many magnitudes, so that the order of additions shows in the sums. */
  private static float[] numbers(int rank, int first, int count) {
    float[] numbers = new float[count];
    SplittableRandom random = new SplittableRandom(31L * first + rank);
    for (int i = 0; i < count; i++) {
      numbers[i] = Math.scalb(random.nextFloat() - 0.5f, random.nextInt(-20, 20));
    }
    return numbers;
  }

  private void run(int ranks, Body body) {
    LocalRanks.run(
        ranks,
        others -> {
          try (ProcessGroup world = ProcessGroup.world(new CountedMessages());
              ProcessGroup group = world.split(0, world.rank(), MESSAGES.timeouts())) {
            RendezvousChoice.choose(group, MESSAGES, true);
            try (HostDevice device = new HostDevice();
                MessageReducer reducer = new MessageReducer("mpi", group, device)) {
              body.run(new Rank(group, device, reducer, others));
            }
          }
        });
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 4_099, FITS - 1, FITS, FITS + 1, 3 * FITS})
  void bitsAreRightInEveryCall(int count) {
    run(
        RANKS,
        rank -> {
          try (DeviceBuffer whole = rank.allocate(count + 1);
              DeviceBuffer part = whole.slice(1, count)) {
            for (int call = 0; call < 4; call++) {
              rank.sum(part, 1_000 * call);
              rank.sum(whole, 7 * call);
            }
          }
        });
  }

  @Test
  void smallBuffersWithAPlanSendNoScatterMessages() {
    run(
        RANKS,
        rank -> {
          try (DeviceBuffer small = rank.allocate(FITS);
              DeviceBuffer large = rank.allocate(FITS + 1)) {
            rank.sum(small, 0); // makes the plans
            rank.sum(large, 0);
            rank.others().barrier();
            int before = sent.get(Channel.SCATTER);
            rank.others().barrier();
            rank.sum(small, 5);
            rank.others().barrier();
            assertEquals(before, sent.get(Channel.SCATTER));
            rank.others().barrier();
            rank.sum(large, 5);
            rank.others().barrier();
            assertEquals(before + RANKS * (RANKS - 1), sent.get(Channel.SCATTER));
          }
        });
  }

  @Test
  void buffersReducedOnceGetNoPayload() {
    run(
        2,
        rank -> {
          rank.others().barrier();
          int before = prepared.get(Channel.PAYLOAD);
          rank.others().barrier();
          try (DeviceBuffer brief = rank.allocate(1_000)) {
            rank.sum(brief, 0);
            rank.others().barrier();
            assertEquals(before, prepared.get(Channel.PAYLOAD));
            rank.others().barrier();
            rank.sum(brief, 1);
            rank.others().barrier();
            assertEquals(before + 2, prepared.get(Channel.PAYLOAD));
          }
        });
  }

  @Test
  void ranksWithAndWithoutAPlanWorkTogether() {
    run(
        RANKS,
        rank -> {
          try (DeviceBuffer known = rank.allocate(1_000)) {
            rank.sum(known, 0);
            for (int call = 0; call < 8; call++) {
              if ((call >> rank.group().rank() & 1) == 1) {
                try (DeviceBuffer fresh = rank.allocate(1_000)) {
                  rank.sum(fresh, call);
                }
              } else {
                rank.sum(known, call);
              }
            }
          }
        });
  }

  @Test
  void payloadsOfMismatchedCallsAreDropped() {
    run(
        RANKS,
        rank -> {
          try (DeviceBuffer five = rank.allocate(5);
              DeviceBuffer nine = rank.allocate(9)) {
            GroupCommunicator communicator = new GroupCommunicator(rank.group());
            rank.sum(five, 0);
            rank.sum(nine, 0);
            for (int odd = 0; odd < RANKS; odd++) {
              boolean isOdd = rank.group().rank() == odd;
              float[] before = numbers(rank.group().rank(), 3, 5);
              five.copyFrom(before);
              assertThrows(
                  MismatchedCallException.class,
                  () ->
                      rank.reducer()
                          .run(CollectiveCall.allReduce(isOdd ? nine : five, ReduceOp.SUM)));
              assertThrows(
                  MismatchedCallException.class,
                  () -> {
                    if (isOdd) {
                      communicator.barrier();
                    } else {
                      rank.reducer().run(CollectiveCall.allReduce(five, ReduceOp.SUM));
                    }
                  });
              float[] after = new float[5];
              five.copyTo(after);
              assertArrayEquals(before, after);
              communicator.barrier();
              rank.sum(nine, odd);
              rank.sum(five, odd);
            }
          }
        });
  }

  @Test
  void payloadsThatAreNotFiniteAreDropped() {
    run(
        2,
        rank -> {
          try (DeviceBuffer buffer = rank.allocate(5)) {
            rank.sum(buffer, 0);
            if (rank.group().rank() == 1) {
              rank.group().matcher().found(3);
            }
            NotFiniteException e =
                assertThrows(
                    NotFiniteException.class,
                    () -> rank.reducer().run(CollectiveCall.allReduce(buffer, ReduceOp.SUM)));
            assertTrue(e.getMessage().contains("rank 1: "), e::toString);
            rank.sum(buffer, 9);
          }
        });
  }

  private final class CountedMessages extends OtherWorld {
    @Override
    public Message sender(ByteBuffer memory, int peer, int tag) {
      prepared.incrementAndGet(tag % prepared.length());
      return new OtherMessage(super.sender(memory, peer, tag)) {
        @Override
        public void start() {
          sent.incrementAndGet(tag % sent.length());
          super.start();
        }
      };
    }
  }
}
