package org.gradientsync.local;

import java.util.Arrays;
import java.util.function.UnaryOperator;
import org.gradientsync.GradientSync;
import org.gradientsync.GradientSyncException;
import org.gradientsync.collective.Group;
import org.gradientsync.local.LocalRanks.RankTask;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One run of ranks as threads: starts them, waits for them, and throws what the first one threw
 * that failed, or that the wait was interrupted before.
 */
final class LocalRun {
  private static final long LOOK_MILLIS = 1000;
  private static final Logger log = LoggerFactory.getLogger(LocalRanks.class);

  private final UnaryOperator<GradientSync.Builder> options;
  private final RankTask task;
  private final LocalGroup group;
  private final Thread[] threads;
  private final boolean[] succeeded;

  LocalRun(int ranks, UnaryOperator<GradientSync.Builder> options, RankTask task) {
    this.options = options;
    this.task = task;
    group = new LocalGroup(ranks);
    threads = new Thread[ranks];
    succeeded = new boolean[ranks];
    for (int i = 0; i < ranks; i++) {
      int rank = i;
      threads[i] = new Thread(() -> run(rank), "rank-" + rank);
      threads[i].setDaemon(true);
    }
  }

  /** Returns when all have succeeded. */
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
      return; // also if none has heeded that this thread was interrupted
    }
    if (group.cause() instanceof GradientSyncException e) {
      throw e; // names its rank itself
    }
    throw group.cause() != null
        ? group.failure()
        : new GradientSyncException(
            "rank ended without a result: rank=" + rank + "; see what its thread has printed");
  }

  private int firstWithoutResult() {
    int rank = 0;
    while (rank < threads.length && succeeded[rank]) {
      rank++;
    }
    return rank;
  }

  private void start() {
    for (int rank = 0; rank < threads.length; rank++) {
      try {
        threads[rank].start();
      } catch (OutOfMemoryError e) { // there may be no more threads
        group.note(rank, e);
        endOthers();
        return;
      }
    }
  }

  private void run(int rank) {
    try {
      carryOut(rank);
      succeeded[rank] = true;
    } catch (Throwable e) {
      if (group.note(rank, e)) {
        endOthers();
      }
    }
  }

  private void carryOut(int rank) throws Exception {
    try (Group world = Group.world(new LocalTransport(group, rank));
        GradientSync sync = create(world)) {
      try {
        task.run(sync);
      } catch (Throwable e) {
        group.note(rank, e); // before closing, which may throw, too, and hide it
        throw e;
      }
    }
  }

  private GradientSync create(Group world) {
    LocalRanks.enter(world); // first, so that the options may ask which rank this is
    return options.apply(GradientSync.builder()).ranks(world).create();
  }

  private void endOthers() {
    group.end();
    for (Thread other : threads) {
      if (other != Thread.currentThread()) {
        other.interrupt();
      }
    }
  }

  private void join() {
    boolean interrupted = false;
    int looks = 0; // while there is a failure
    for (Thread thread : threads) {
      while (true) {
        try {
          thread.join(LOOK_MILLIS);
          if (!thread.isAlive()) {
            break;
          }
          looks += group.cause() != null ? 1 : 0;
          if (looks == 2) {
            warnOfThoseThatGoOn();
          }
        } catch (InterruptedException e) {
          interrupted = true;
          group.note(LocalGroup.CALLER, e);
          endOthers();
        }
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  /** Nobody else is told before all have ended, and these may compute for a long time. */
  private void warnOfThoseThatGoOn() {
    log.warn(
        "{}; these have not noticed, as they make no calls: {}",
        group.failure().getMessage(),
        Arrays.stream(threads).filter(Thread::isAlive).map(Thread::getName).toList());
  }
}
