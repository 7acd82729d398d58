package org.gradientsync.core.group;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.withSettings;

import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.LockSupport;
import org.gradientsync.GradientSyncException;
import org.gradientsync.RankLostException;
import org.gradientsync.core.collectives.messages.GroupCommunicator;
import org.gradientsync.core.local.LocalWorld;
import org.gradientsync.core.ranks.Departure;
import org.gradientsync.core.ranks.JobLiveness;
import org.gradientsync.core.ranks.Liveness;
import org.gradientsync.local.LocalRanks;
import org.gradientsync.spi.Timeouts;
import org.gradientsync.spi.Transport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.function.Executable;
import org.mockito.MockMakers;

/** What happens to calls when the process of one rank ends. */
@Timeout(60)
class EndingTest {
  private static final Duration LONG = Duration.ofSeconds(30);
  private static final Timeouts TIMEOUTS = new Timeouts(LONG, LONG, Optional.empty());

  private interface Ending {
    void end(ProcessGroup group, GroupCommunicator communicator) throws Exception;
  }

  /** Ends rank 1. Rank 0 is notified in its next call, or after a call that rank 1 had reached. */
  private static void run(Ending ending) {
    CountDownLatch over = new CountDownLatch(1);
    LocalRanks.run(
        2,
        own -> {
          ProcessGroup world = LocalWorld.current().orElseThrow();
          try (ProcessGroup group = world.split(0, world.rank(), TIMEOUTS)) {
            GroupCommunicator communicator = new GroupCommunicator(group);
            if (group.rank() == 1) {
              ending.end(group, communicator);
              over.countDown();
              return;
            }
            over.await();
            Executable calls =
                () -> {
                  communicator.barrier();
                  communicator.barrier();
                };
            String message = assertThrows(RankLostException.class, calls).getMessage();
            assertTrue(message.startsWith("rank 1 (thread=rank-1) has left: it closed"), message);
          }
        });
  }

  private static void assertEnding(GroupCommunicator communicator) {
    GradientSyncException e = assertThrows(GradientSyncException.class, communicator::barrier);
    assertEquals(GradientSyncException.class, e.getClass());
    assertTrue(e.getMessage().startsWith("this process is ending: rank=1, in="), e.getMessage());
  }

  @Test
  void laterCallsThrow() {
    run(
        (group, communicator) -> {
          assertTrue(group.job().leave(Departure.CLOSED, ""));
          assertEnding(communicator);
        });
  }

  @Test
  void waitingCallsThrow() {
    run(
        (group, communicator) -> {
          Thread hook =
              new Thread(
                  () -> {
                    while (group.report.lines().stream()
                        .noneMatch(line -> line.contains("for rank 0"))) {
                      LockSupport.parkNanos(1_000_000);
                    }
                    group.job().leave(Departure.CLOSED, "");
                  });
          hook.setDaemon(true);
          hook.start();
          assertEnding(communicator);
          hook.join();
        });
  }

  /** The process's shutdown hook may be slow, and the others must still be notified. */
  @Test
  void groupsClosedWhileTheProcessEndsSendDepartureNotices() {
    run(
        (group, communicator) -> {
          Thread hook = new Thread(() -> group.job().leave(Departure.CLOSED, ""));
          synchronized (group.job().deadlockDetector) { // leaving must close it
            hook.start();
            while (!group.job().isEnding()) {
              Thread.onSpinWait();
            }
            group.close();
          }
          hook.join();
        });
  }

  /** A rank that comes to its end waits until the failed one has ended the job. */
  @Test
  void theDeathOfTheRankThatEndsTheJobIsSeen() {
    CountDownLatch left = new CountDownLatch(1);
    LocalRanks.run(
        2,
        own -> {
          ProcessGroup world = LocalWorld.current().orElseThrow();
          try (ProcessGroup group = world.split(0, world.rank(), TIMEOUTS)) {
            if (group.rank() == 1) {
              group.job().leave(Departure.CLOSED, "boom");
              left.countDown();
              return;
            }
            Liveness liveness = group.parts().liveness();
            left.await();
            assertTrue(liveness.endedBy().endsWith(": boom"), liveness.endedBy());
            assertFalse(liveness.hasEnderDied(), "it lives");
            assertFalse(ofDead(liveness, 0).hasEnderDied(), "another one has died");
            assertTrue(ofDead(liveness, 1).hasEnderDied(), "it has died");
          }
        });
  }

  private static Liveness ofDead(Liveness liveness, int dead) {
    Transport transport =
        mock(
            Transport.class,
            withSettings()
                .mockMaker(MockMakers.SUBCLASS)
                .defaultAnswer(call -> !call.getArgument(0).equals(dead)));
    return new Liveness(liveness.ranks(), new JobLiveness(transport), liveness.departures());
  }
}
