package org.gradientsync.core.sync;

import java.util.ArrayDeque;
import org.gradientsync.PendingAverage;
import org.gradientsync.core.buckets.CommunicationThread;

/**
 * The averages of a sync that run on its communication thread and were not waited for yet. Each has
 * a lane of its own, so that those after one that fails on all ranks alike are still made.
 */
final class PendingAverages {
  private final ArrayDeque<Pending> pending = new ArrayDeque<>(); // guarded by itself
  private long known; // the last that was waited for: it and those before are over

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
