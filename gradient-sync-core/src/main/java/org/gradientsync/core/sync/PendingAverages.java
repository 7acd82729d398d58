package org.gradientsync.core.sync;

import java.util.ArrayDeque;
import org.gradientsync.GradientSync;
import org.gradientsync.PendingAverage;
import org.gradientsync.RankLostException;
import org.gradientsync.core.buckets.CommunicationThread;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The averages of a sync that run on its communication thread and were not waited for yet. Each has
 * a lane of its own, so that those after one that fails on all ranks alike are still made.
 */
final class PendingAverages {
  private static final Logger log = LoggerFactory.getLogger(GradientSync.class);

  private final ArrayDeque<Pending> pending = new ArrayDeque<>(); // guarded by itself
  private long known; // the last that was waited for: it and those before are over
  private volatile boolean seen; // a call has thrown what ends all averages

  private record Pending(PendingAverages owner, CommunicationThread.Lane lane, long ticket)
      implements PendingAverage {
    @Override
    public void await() {
      owner.remove(this);
      try {
        lane.await(ticket);
      } finally {
        owner.awaited(this);
      }
    }
  }

  /**
   * Runs an average on the thread, after all work that it has. Throws instead if one has failed
   * that nobody has waited for, although this rank has waited for a later one.
   */
  PendingAverage start(CommunicationThread thread, Runnable average) {
    long over;
    synchronized (pending) {
      over = known;
    }
    awaitTo(over);
    CommunicationThread.Lane lane = thread.lane();
    Pending started = new Pending(this, lane, lane.submit(average));
    synchronized (pending) {
      // A program may never wait for these.
      while (!pending.isEmpty() && pending.peek().lane.hasSucceeded(pending.peek().ticket)) {
        pending.remove();
      }
      pending.add(started);
    }
    return started;
  }

  private void remove(Pending awaited) {
    synchronized (pending) {
      pending.remove(awaited);
    }
  }

  private void awaited(Pending last) {
    synchronized (pending) {
      known = last.lane.isOver(last.ticket) ? Math.max(known, last.ticket) : known;
    }
  }

  /** A call has thrown the failure that ended all averages. */
  void seen() {
    seen = true;
  }

  /**
   * Looks, before the sync is closed, for averages that nobody has waited for. Logs if some are not
   * made. That a rank is lost is no news then.
   *
   * @return throws what one has thrown that no call has; null if there is none
   */
  AutoCloseable unseen(int rank) {
    synchronized (pending) {
      long open = pending.stream().filter(average -> !average.lane.isOver(average.ticket)).count();
      if (open > 0) {
        log.warn(
            "averages in the background are given up, because their sync is closed: averages={},"
                + " rank={}; await() them before",
            open,
            rank);
      }
      for (Pending average : pending) {
        Throwable failure = average.lane.failure();
        if (failure != null && !(failure instanceof RankLostException) && !seen) {
          return () -> average.lane.await(average.ticket);
        }
      }
      return null;
    }
  }

  /** Waits for those that nobody has waited for, and throws what the first failure threw. */
  void awaitAll() {
    awaitTo(Long.MAX_VALUE);
  }

  private void awaitTo(long ticket) {
    while (true) {
      Pending next;
      synchronized (pending) {
        next = pending.peek();
      }
      if (next == null || next.ticket > ticket) {
        return;
      }
      next.await();
    }
  }
}
