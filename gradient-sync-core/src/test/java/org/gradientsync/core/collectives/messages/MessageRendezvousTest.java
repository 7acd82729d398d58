package org.gradientsync.core.collectives.messages;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Arrays;
import java.util.Map;
import java.util.Optional;
import java.util.SplittableRandom;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Stream;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.MismatchedCallException;
import org.gradientsync.NotFiniteException;
import org.gradientsync.RankLostException;
import org.gradientsync.ReduceOp;
import org.gradientsync.core.group.OtherWorld;
import org.gradientsync.core.group.ProcessGroup;
import org.gradientsync.core.host.HostDevice;
import org.gradientsync.core.ranks.Channel;
import org.gradientsync.core.ranks.NodeLayout;
import org.gradientsync.local.LocalRanks;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.Message;
import org.gradientsync.spi.Settings;
import org.gradientsync.spi.Timeouts;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Ranks as threads that take each other for ranks of other nodes, and meet over these nodes. Those
 * of a single node share no memory.
 */
@Timeout(120)
class MessageRendezvousTest {
  private static final Settings NONE = new Settings(Map.of());
  private static final Settings MESSAGES = new Settings(Map.of("dev.rendezvous", "messages"));
  private static final int CALLS = 10;

  /** Longer than a rank waits for what one that has left did before. */
  private static final long SLOW_NANOS = 600_000_000;

  private volatile int slow = -1; // a rank whose calls to rank 0 take as long

  /** Started messages, by channel and rank. */
  private final AtomicIntegerArray[] started = new AtomicIntegerArray[Channel.ARRIVALS + 1];

  private interface Body {
    void run(ProcessGroup group, GradientSync own) throws Exception;
  }

  static Stream<Arguments> placements() {
    return Stream.of(
            new int[] {0, 0, 1, 1},
            new int[] {0, 1, 1},
            new int[] {7, 7, 7, 2},
            new int[] {0, 1},
            new int[] {0, 1, 0, 1, 0},
            new int[] {0, 1, 2, 3, 4},
            new int[] {0, 0},
            new int[] {0, 0, 0},
            new int[] {0, 1, 1, 2, 2, 2})
        .map(Arguments::of);
  }

  /**
   * @param nodes the node of each rank
   */
  private void run(int[] nodes, Timeouts timeouts, Body body) {
    for (int channel = 0; channel < started.length; channel++) {
      started[channel] = new AtomicIntegerArray(nodes.length);
    }
    LocalRanks.run(
        nodes.length,
        own -> {
          try (ProcessGroup world = ProcessGroup.world(new Nodes(nodes));
              ProcessGroup group = world.split(0, world.rank(), timeouts)) {
            RendezvousChoice.choose(group, isOneNode(nodes) ? MESSAGES : NONE, true);
            body.run(group, own);
          }
        });
  }

  private static boolean isOneNode(int[] nodes) {
    return Arrays.stream(nodes).distinct().count() == 1;
  }

  private void run(int[] nodes, Body body) {
    run(nodes, NONE.timeouts(), body);
  }

  private static Timeouts timeouts(int millis) {
    return new Timeouts(Duration.ofMillis(millis), Duration.ofMillis(millis), Optional.empty());
  }

  @ParameterizedTest
  @MethodSource("placements")
  void onlyLeadersSendMessages(int[] nodes) {
    run(
        nodes,
        (group, own) -> {
          GroupCommunicator communicator = new GroupCommunicator(group);
          communicator.barrier();
          own.barrier();
          int before = started[Channel.CALLS].get(group.rank());
          for (int i = 0; i < CALLS; i++) {
            communicator.barrier();
          }
          NodeLayout layout =
              isOneNode(nodes)
                  ? NodeLayout.ofSingles(group.ranks())
                  : new NodeLayout(group.ranks());
          int[] ofFive = {3, 2, 2, 3, 2}; // node 1 sends in the first round only
          int sent = layout.nodes() == 5 ? ofFive[layout.node()] : layout.nodes() - 1;
          assertEquals(
              layout.localRank() == 0 ? CALLS * sent : 0,
              started[Channel.CALLS].get(group.rank()) - before);
          own.barrier();
        });
  }

  @ParameterizedTest
  @MethodSource("placements")
  void allRanksNameAllCallsThatDoNotMatch(int[] nodes) {
    run(
        nodes,
        (group, own) -> {
          try (HostDevice device = new HostDevice();
              MessageReducer reducer = new MessageReducer("mpi", group, device);
              DeviceBuffer buffer = device.allocate(DataType.FLOAT32, 50).named("w")) {
            GroupCommunicator communicator = new GroupCommunicator(group);
            for (int odd = 0; odd < nodes.length; odd++) {
              int count = group.rank() == odd ? 3 : 40; // of another size class
              float[] values = new float[50];
              Arrays.fill(values, group.rank());
              buffer.copyFrom(values);
              DeviceBuffer part = buffer.slice(0, count);
              String message =
                  assertThrows(
                          MismatchedCallException.class,
                          () -> reducer.run(CollectiveCall.allReduce(part, ReduceOp.SUM)))
                      .getMessage();
              for (int rank = 0; rank < nodes.length; rank++) {
                int itsCount = rank == odd ? 3 : 40;
                assertTrue(
                    message.contains(
                        "rank " + rank + ": allReduce(FLOAT32[" + itsCount + "] \"w\", SUM)"),
                    message);
              }
              float[] after = new float[50];
              buffer.copyTo(after);
              assertArrayEquals(values, after);
              boolean isOdd = group.rank() == odd;
              assertThrows(
                  MismatchedCallException.class,
                  () -> {
                    if (isOdd) {
                      communicator.barrier();
                    } else {
                      reducer.run(CollectiveCall.allReduce(part, ReduceOp.SUM));
                    }
                  });
              communicator.barrier();
              sum(device, reducer, group, 40, odd);
            }
          }
        });
  }

  @ParameterizedTest
  @MethodSource("placements")
  void allRanksNameTheOneWhoseGradientsAreNotFinite(int[] nodes) {
    run(
        nodes,
        (group, own) -> {
          try (HostDevice device = new HostDevice();
              MessageReducer reducer = new MessageReducer("mpi", group, device);
              DeviceBuffer buffer = device.allocate(DataType.FLOAT32, 5)) {
            int last = nodes.length - 1;
            if (group.rank() == last) {
              group.matcher().found(3);
            }
            String message =
                assertThrows(
                        NotFiniteException.class,
                        () -> reducer.run(CollectiveCall.allReduce(buffer, ReduceOp.SUM)))
                    .getMessage();
            assertTrue(message.contains("\n  rank " + last + ": "), message);
            assertFalse(message.contains("\n  rank 0: "), message);
            sum(device, reducer, group, 5, 1);
          }
        });
  }

  /** Some of them, because each rank of each takes a time-out. */
  static Stream<Arguments> unequalPlacements() {
    return Stream.of(
            new int[] {0, 1, 1},
            new int[] {0, 1, 0, 1, 0},
            new int[] {0, 1, 1, 2, 2, 2},
            new int[] {0, 0, 0})
        .map(Arguments::of);
  }

  /** Each rank is missing once, in a group of its own. */
  @ParameterizedTest
  @MethodSource("unequalPlacements")
  void exactlyTheMissingRankIsNamed(int[] nodes) {
    for (int missing = 0; missing < nodes.length; missing++) {
      int absent = missing;
      CountDownLatch over = new CountDownLatch(nodes.length - 1);
      run(
          nodes,
          timeouts(1000),
          (group, own) -> {
            GroupCommunicator communicator = new GroupCommunicator(group);
            communicator.barrier();
            own.barrier();
            if (group.rank() == absent) {
              assertTrue(over.await(60, TimeUnit.SECONDS));
              return;
            }
            String message =
                assertThrows(RankLostException.class, communicator::barrier).getMessage();
            over.countDown();
            boolean own0 = message.contains("timed out: rank " + absent + " did not join in time");
            boolean others = // of a rank that timed out first
                message.contains(
                    " gave up in the middle of a call: timed out: rank " + absent + " ");
            assertTrue(own0 || others, message);
          });
    }
  }

  @Test
  void aRankThatIsOftenLateKeepsFewNotices() {
    int[] nodes = {0, 0, 1, 1};
    run(
        nodes,
        timeouts(60_000),
        (group, own) -> {
          GroupCommunicator communicator = new GroupCommunicator(group);
          communicator.barrier();
          for (int call = 0; call < 5; call++) {
            if (group.rank() == 3) {
              Thread.sleep(300);
            }
            communicator.barrier();
          }
          own.barrier();
          // The late rank hears of both others once; they tell each other at most once a call.
          int sent = started[Channel.ARRIVALS].get(0) + started[Channel.ARRIVALS].get(1);
          assertTrue(sent <= 2 + 2 * 5 * 2, "sent=" + sent);
          assertEquals(0, started[Channel.ARRIVALS].get(3));
          own.barrier();
          if (group.rank() == 2) {
            Thread.sleep(400);
          }
          communicator.barrier(); // in which rank 3 waits for long
        });
  }

  @Test
  void aFailureReachesTheOtherRanks() {
    run(
        new int[] {0, 1, 1, 2},
        timeouts(60_000),
        (group, own) -> {
          GroupCommunicator communicator = new GroupCommunicator(group);
          communicator.barrier();
          own.barrier();
          if (group.rank() == 2) {
            synchronized (group) {
              group.broken("the disk is full", null);
            }
          } else {
            RankLostException e = assertThrows(RankLostException.class, communicator::barrier);
            assertTrue(e.getMessage().contains("the disk is full, rank=2"), e::toString);
            assertTrue(e.getMessage().startsWith("rank 2 gave up"), e::toString);
          }
          own.barrier();
        });
  }

  /** Rank 2 passes on late that rank 3 has come. */
  @Test
  void aRankThatLeavesAfterACallIsNotMissedInIt() {
    run(
        new int[] {0, 0, 0, 0},
        (group, own) -> {
          GroupCommunicator communicator = new GroupCommunicator(group);
          communicator.barrier();
          own.barrier();
          slow = 2;
          own.barrier();
          communicator.barrier();
        });
  }

  @ParameterizedTest
  @MethodSource("placements")
  void smallSumsAreRight(int[] nodes) {
    run(
        nodes,
        (group, own) -> {
          try (HostDevice device = new HostDevice();
              MessageReducer reducer = new MessageReducer("mpi", group, device)) {
            for (int count : new int[] {1, 2, 7, 16, 17, 250, 1024, 2047, 2048, 2049, 5000}) {
              for (int call = 0; call < 3; call++) {
                sum(device, reducer, group, count, call);
              }
            }
          }
        });
  }

  @ParameterizedTest
  @MethodSource("placements")
  void smallSumsSendNothingButTheCalls(int[] nodes) {
    run(
        nodes,
        (group, own) -> {
          try (HostDevice device = new HostDevice();
              MessageReducer reducer = new MessageReducer("mpi", group, device)) {
            int before = started[Channel.SCATTER].get(group.rank());
            sum(device, reducer, group, 2048, 0);
            assertEquals(before, started[Channel.SCATTER].get(group.rank()));
            sum(device, reducer, group, 2049, 0);
            assertTrue(started[Channel.SCATTER].get(group.rank()) > before);
          }
        });
  }

  private static void sum(
      HostDevice device, MessageReducer reducer, ProcessGroup group, int count, int call) {
    float[] expected = numbers(0, call, count);
    for (int rank = 1; rank < group.size(); rank++) {
      float[] next = numbers(rank, call, count);
      for (int i = 0; i < count; i++) {
        expected[i] += next[i];
      }
    }
    try (DeviceBuffer buffer = device.allocate(DataType.FLOAT32, count)) {
      buffer.copyFrom(numbers(group.rank(), call, count));
      reducer.run(CollectiveCall.allReduce(buffer, ReduceOp.SUM));
      float[] actual = new float[count];
      buffer.copyTo(actual);
      assertArrayEquals(expected, actual);
    }
  }

  /** Values of many magnitudes, so that the order of additions shows in the sums. */
  private static float[] numbers(int rank, int call, int count) {
    float[] numbers = new float[count];
    SplittableRandom random = new SplittableRandom(31L * call + rank);
    for (int i = 0; i < count; i++) {
      numbers[i] = Math.scalb(random.nextFloat() - 0.5f, random.nextInt(-20, 20));
    }
    return numbers;
  }

  private final class Nodes extends OtherWorld {
    private static final int CHANNELS = 1 << Channel.BITS;

    Nodes(int[] nodes) {
      super(rank -> nodes[rank]);
    }

    @Override
    public Message sender(ByteBuffer memory, int peer, int tag) {
      Message message = super.sender(memory, peer, tag);
      int channel = tag % CHANNELS;
      return channel >= started.length
          ? message
          : beforeStarts(
              message,
              () -> {
                started[channel].incrementAndGet(rank());
                if (channel == Channel.CALLS && rank() == slow && peer == 0) {
                  LockSupport.parkNanos(SLOW_NANOS);
                }
              });
    }
  }
}
