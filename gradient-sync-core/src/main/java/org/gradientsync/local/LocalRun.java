package org.gradientsync.local;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.function.UnaryOperator;
import org.gradientsync.GradientSync;
import org.gradientsync.GradientSyncException;
import org.gradientsync.core.backend.Amounts;
import org.gradientsync.core.backend.WaitClock;
import org.gradientsync.core.group.ProcessGroup;
import org.gradientsync.core.local.LocalGroup;
import org.gradientsync.core.local.LocalTransport;
import org.gradientsync.core.local.LocalWorld;
import org.gradientsync.core.sync.SyncBuilder;
import org.gradientsync.local.LocalRanks.RankTask;
import org.gradientsync.spi.Timeouts;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One run of ranks as threads. It starts the threads, waits for them, and throws the first failure:
 * a rank's, or an interrupt of the waiting thread. After a failure it waits for the other ranks
 * only for a limited time, so a thread that ignores interrupts is left running.
 */
final class LocalRun {
  private static final long POLL_MILLIS = 1000;
  private static final long FAILED_POLL_MILLIS = 50;
  private static final long WARN_NANOS = 1_000_000_000;
  private static final Logger log = LoggerFactory.getLogger(LocalRanks.class);

  private final UnaryOperator<GradientSync.Builder> options;
  private final RankTask task;
  private final LocalGroup group;
  private final Thread[] threads;
  private final boolean[] succeeded;
  private final Duration grace;

  /**
   * Creates the threads.
   *
   * @param grace how long to wait for the other ranks after a failure
   */
  LocalRun(int ranks, UnaryOperator<GradientSync.Builder> options, RankTask task, Duration grace) {
    this.options = options;
    this.task = task;
    this.grace = grace;
    group = new LocalGroup(ranks);
    threads = new Thread[ranks];
    succeeded = new boolean[ranks];
    for (int i = 0; i < ranks; i++) {
      int rank = i;
      threads[i] = new Thread(() -> run(rank), "rank-" + rank);
      threads[i].setDaemon(true);
    }
  }

  /** Returns when all ranks have succeeded; otherwise throws. */
  void run() {
    ExitHook hook = new ExitHook(threads);
    try {
      start();
      join();
    } finally {
      hook.remove();
    }
    int rank = firstWithoutResult();
    if (rank == threads.length) {
      warnOfRanksLeftBehind();
      return; // even if this thread was interrupted
    }
    if (group.hasGoneOn() && group.cause() == null && group.failure(rank) != null) {
      throw new GradientSyncException(
          "rank " + rank + " failed: " + group.failure(rank), group.failure(rank));
    }
    if (group.cause() == null) {
      throw new GradientSyncException(
          "rank ended without a result: rank=" + rank + "; see what its thread has printed");
    }
    GradientSyncException failure =
        group.cause() instanceof GradientSyncException e
            ? e // names its rank itself
            : group.failure();
    leftBehind().forEach(failure::addSuppressed);
    throw failure;
  }

  /** One exception for each thread that still runs, with that thread's stack trace. */
  private List<GradientSyncException> leftBehind() {
    List<GradientSyncException> all = new ArrayList<>();
    for (Thread thread : threads) {
      if (thread.isAlive()) {
        GradientSyncException e =
            new GradientSyncException(
                ("rank was left behind: thread=%s has ignored an interrupt for %s and goes on;"
                        + " let its task end when its thread is interrupted")
                    .formatted(thread.getName(), Amounts.time(grace)));
        e.setStackTrace(thread.getStackTrace());
        all.add(e);
      }
    }
    return all;
  }

  private int firstWithoutResult() {
    int rank = 0;
    while (rank < threads.length && (succeeded[rank] || group.isLeftBehind(rank))) {
      rank++;
    }
    return rank;
  }

  private void warnOfRanksLeftBehind() {
    for (int rank = 0; rank < threads.length; rank++) {
      if (!succeeded[rank]) {
        Throwable failure = group.failure(rank);
        String why = failure == null ? "did not come in time" : "failed";
        log.warn("the others went on without rank {}, which {}", rank, why, failure);
      }
    }
  }

  private void start() {
    for (int rank = 0; rank < threads.length; rank++) {
      try {
        threads[rank].start();
      } catch (OutOfMemoryError e) { // the system may have no more threads
        group.recordFailure(rank, e);
        endOthers();
        return;
      }
    }
  }

  private void run(int rank) {
    try {
      runTask(rank);
      succeeded[rank] = true;
    } catch (Throwable e) {
      if (group.recordFailure(rank, e)) {
        endOthers();
      }
    } finally {
      group.leave(rank);
    }
  }

  private void runTask(int rank) throws Exception {
    try (ProcessGroup world = ProcessGroup.world(new LocalTransport(group, rank));
        GradientSync sync = create(world)) {
      try {
        task.run(sync);
      } catch (Throwable e) {
        group.recordFailure(rank, e); // before closing, which may throw, too
        throw e;
      }
    }
  }

  private GradientSync create(ProcessGroup world) {
    LocalWorld.enter(world); // first, because the options may ask for the rank
    GradientSync.Builder builder = options.apply(GradientSync.builder());
    Objects.requireNonNull(builder, "options return no builder; return the one that they get");
    return SyncBuilder.of(builder).ranks(world).create();
  }

  private void endOthers() {
    group.end(threads);
  }

  private void join() {
    boolean interrupted = false;
    boolean warned = false;
    WaitClock sinceFailure = null;
    for (int rank = 0; rank < threads.length; rank++) {
      Thread thread = threads[rank];
      while (thread.isAlive()) {
        if (group.cause() == null && !group.isLeftBehind(rank)) {
          sinceFailure = null; // there is none, or the others go on
        } else {
          sinceFailure = sinceFailure == null ? new WaitClock() : sinceFailure;
          long waited = sinceFailure.look();
          if (waited > Timeouts.nanos(grace)) {
            break; // the loop still checks each remaining thread once
          }
          if (!warned && waited > WARN_NANOS && group.cause() != null) {
            warned = true;
            warnOfRunningThreads();
          }
        }
        try {
          thread.join(sinceFailure == null ? POLL_MILLIS : FAILED_POLL_MILLIS);
        } catch (InterruptedException e) {
          interrupted = true;
          group.recordFailure(LocalGroup.CALLER, e);
          endOthers();
        }
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  /** The log is the only report until these threads end or the grace period is over. */
  private void warnOfRunningThreads() {
    log.warn(
        "{}; these have not noticed, as they make no calls: {}",
        group.failure().getMessage(),
        Arrays.stream(threads).filter(Thread::isAlive).map(Thread::getName).toList());
  }
}
