package org.gradientsync.core.group;

import static org.gradientsync.spi.Settings.DEFAULT_LATE;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import org.gradientsync.GradientSyncException;
import org.gradientsync.RankLostException;
import org.gradientsync.core.collectives.messages.GroupCommunicator;
import org.gradientsync.core.local.LocalWorld;
import org.gradientsync.core.ranks.Channel;
import org.gradientsync.core.ranks.Departure;
import org.gradientsync.core.rendezvous.CallRecord.Origin;
import org.gradientsync.local.LocalRanks;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.CollectiveCall.Kind;
import org.gradientsync.spi.HostCall;
import org.gradientsync.spi.Message;
import org.gradientsync.spi.RankGroup;
import org.gradientsync.spi.Timeouts;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** How a rank waits. */
@Timeout(60)
class WaitTest {
  private static final int PROCESSORS = Runtime.getRuntime().availableProcessors();
  private static final Timeouts LONG =
      new Timeouts(Duration.ofSeconds(30), DEFAULT_LATE, Optional.empty());

  @Test
  void oversubscribedRanksYieldAtOnce() {
    assumeTrue(PROCESSORS < LocalRanks.MAX_RANKS);
    LocalRanks.run(
        PROCESSORS + 1,
        sync -> {
          boolean yields = sync.rank() == 0 && yieldsSoon(LocalWorld.current().orElseThrow());
          sync.barrier(); // nobody leaves before
          assertEquals(sync.rank() == 0, yields);
        });
  }

  @Test
  void subgroupsCountAllRanksOfTheNode() {
    assumeTrue(PROCESSORS < LocalRanks.MAX_RANKS);
    LocalRanks.run(
        Math.max(3, PROCESSORS + 1),
        sync -> {
          ProcessGroup world = LocalWorld.current().orElseThrow();
          int color = Math.min(sync.rank() / 2, 1); // ranks 0 and 1, and the others
          try (ProcessGroup group = world.split(color, 0, world.timeouts())) {
            boolean yields = sync.rank() == 0 && yieldsSoon(group);
            sync.barrier();
            assertEquals(sync.rank() == 0, yields);
          }
        });
  }

  @Test
  void ranksWithAProcessorEachSpin() {
    assumeTrue(PROCESSORS > 1);
    LocalRanks.run(
        2,
        sync -> {
          boolean yields = sync.rank() == 0 && yieldsSoon(LocalWorld.current().orElseThrow());
          sync.barrier();
          assertFalse(yields);
        });
  }

  @Test
  void slowMessageTestsDoNotPreventTheTimeout() {
    Timeouts timeouts = new Timeouts(Duration.ofSeconds(1), DEFAULT_LATE, Optional.empty());
    CountDownLatch over = new CountDownLatch(1);
    LocalRanks.run(
        2,
        sync -> {
          try (ProcessGroup group = LocalWorld.current().orElseThrow().split(0, 0, timeouts)) {
            if (sync.rank() == 1) {
              over.await();
              return;
            }
            int[] slowLooks = new int[1];
            Message never =
                message(
                    () -> {
                      if (group.report.lines().get(1).contains("waits for rank 1")) {
                        slowLooks[0]++;
                        LockSupport.parkNanos(50_000_000); // as on an overloaded machine
                      }
                      return false;
                    });
            try {
              assertThrows(RankLostException.class, () -> group.await(never, 1));
            } finally {
              over.countDown();
            }
            // The time-out is 20 polls of 50 ms. If only every 20th counted, it would take 200 or
            // more.
            assertTrue(slowLooks[0] < 60, "looks=" + slowLooks[0]);
          }
        });
  }

  /** Its last message may take seconds on a slow link, on which the notice is faster. */
  @Test
  void aRankThatHasFinishedTheCallBeforeItLeftIsWaitedFor() {
    LocalRanks.run(
        2,
        sync -> {
          try (ProcessGroup group = LocalWorld.current().orElseThrow().split(0, 0, LONG)) {
            new GroupCommunicator(group).barrier();
            if (sync.rank() == 0) {
              group.await(oneSecondAfterTheOtherHasLeft(group), 1);
            }
          }
        });
  }

  @Test
  void aRankThatLeavesInTheMiddleOfTheCallIsLost() {
    CountDownLatch over = new CountDownLatch(1);
    LocalRanks.run(
        2,
        sync -> {
          ProcessGroup group = LocalWorld.current().orElseThrow().split(0, 0, LONG);
          new GroupCommunicator(group).barrier();
          if (sync.rank() == 1) {
            run(group, () -> group.leave(Departure.CLOSED, ""));
            over.await();
          } else {
            Runnable call = () -> run(group, () -> group.await(message(() -> false), 1));
            String message = assertThrows(RankLostException.class, call::run).getMessage();
            over.countDown();
            assertTrue(message.startsWith("rank 1 (thread=rank-1) has left: it closed"), message);
          }
          group.close();
        });
  }

  /** What it has not sent, it may have waited for itself. */
  @Test
  void aRankThatIsLostBehindOneThatHasFinishedIsNamed() {
    CountDownLatch over = new CountDownLatch(1);
    LocalRanks.run(
        3,
        sync -> {
          try (ProcessGroup group = LocalWorld.current().orElseThrow().split(0, 0, LONG)) {
            new GroupCommunicator(group).barrier();
            if (sync.rank() == 0) {
              Message never = message(() -> false);
              String text =
                  assertThrows(RankLostException.class, () -> group.await(never, 1)).getMessage();
              over.countDown();
              assertTrue(text.startsWith("rank 2 (thread=rank-2) has left: its process"), text);
            } else if (sync.rank() == 2) {
              Thread.sleep(500); // until rank 0 has seen that rank 1 has left
              group.leave(Departure.SIGNAL, "");
              over.await();
            }
          }
        });
  }

  private static void run(ProcessGroup group, Runnable body) {
    CollectiveCall barrier = new HostCall(Kind.BARRIER, null, null, RankGroup.NO_RANK);
    group.run(Origin.COMMUNICATOR, barrier, call -> body.run());
  }

  private static Message oneSecondAfterTheOtherHasLeft(ProcessGroup group) {
    long[] left = new long[1];
    return message(
        () -> {
          if (left[0] == 0 && group.parts().liveness().departures().hasLeft(1)) {
            left[0] = System.nanoTime();
          }
          return left[0] != 0 && System.nanoTime() - left[0] > 1_000_000_000;
        });
  }

  /** As MPI's: a message that fails does so once, and counts as finished then. */
  @Test
  void aMessageThatFailsWhileTheMissingRanksAreNamedBreaksTheGroup() {
    Timeouts timeouts =
        new Timeouts(Duration.ofSeconds(20), Duration.ofMillis(300), Optional.empty());
    CountDownLatch over = new CountDownLatch(1);
    LocalRanks.run(
        3,
        sync -> {
          AtomicBoolean failing = new AtomicBoolean();
          OtherWorld transport =
              new OtherWorld() {
                @Override
                public Message receiver(ByteBuffer memory, int peer, int tag) {
                  Message message = super.receiver(memory, peer, tag);
                  return rank() != 0 || peer != 1 || tag % (1 << Channel.BITS) != Channel.CALLS
                      ? message
                      : new OtherMessage(message) {
                        @Override
                        public boolean test() {
                          if (failing.get() && isNaming() && failing.getAndSet(false)) {
                            throw new GradientSyncException("the network is down");
                          }
                          return super.test();
                        }
                      };
                }
              };
          try (ProcessGroup world = ProcessGroup.world(transport);
              ProcessGroup group = world.split(0, world.rank(), timeouts)) {
            if (sync.rank() != 0) {
              over.await(); // and comes to no call
              return;
            }
            failing.set(true);
            try {
              RankLostException e =
                  assertThrows(RankLostException.class, new GroupCommunicator(group)::barrier);
              assertTrue(e.getMessage().startsWith("the network is down"), e.getMessage());
              assertTrue(group.isBroken());
            } finally {
              over.countDown();
            }
          }
        });
  }

  private static boolean isNaming() {
    return StackWalker.getInstance()
        .walk(frames -> frames.anyMatch(f -> f.getMethodName().equals("describeAwaited")));
  }

  /** Whether rank 0 yields within a hundred polls of its message. */
  private static boolean yieldsSoon(ProcessGroup group) {
    boolean[] yields = new boolean[1];
    int[] looks = new int[1];
    Message message =
        message(
            () -> {
              yields[0] = group.report.lines().get(1).contains("waits for rank 1");
              return ++looks[0] == 100;
            });
    group.await(message, 1);
    return yields[0];
  }

  /** A message from rank 1. */
  private static Message message(BooleanSupplier hasCome) {
    return new Message() {
      @Override
      public void start() {
        // rank 1 starts it
      }

      @Override
      public boolean test() {
        return hasCome.getAsBoolean();
      }

      @Override
      public void close() {
        // nothing to release
      }
    };
  }
}
