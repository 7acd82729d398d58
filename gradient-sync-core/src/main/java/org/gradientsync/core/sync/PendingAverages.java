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

  private final class Pending implements PendingAverage {
    private final CommunicationThread.Lane lane;
    private final long ticket;
    private volatile Throwable before; // what one that nobody had waited for has thrown, or null

    Pending(CommunicationThread.Lane lane, long ticket) {
      this.lane = lane;
      this.ticket = ticket;
    }

    @Override
    public void await() {
      remove(this);
      lane.await(ticket);
      before = before == null ? failureBefore(ticket) : before; // of those, all are over
      if (before instanceof Error e) {
        throw e;
      } else if (before != null) {
        throw (RuntimeException) before;
      }
    }
  }

  /** Runs an average on the thread, after all work that it has. */
  PendingAverage start(CommunicationThread thread, Runnable average) {
    CommunicationThread.Lane lane = thread.lane();
    Pending started = new Pending(lane, lane.submit(average));
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

  /** What the first of those has thrown that nobody has waited for, or null. */
  private Throwable failureBefore(long ticket) {
    while (true) {
      Pending next;
      synchronized (pending) {
        next = pending.peek();
        if (next == null || next.ticket > ticket) {
          return null;
        }
        pending.remove();
      }
      try {
        next.lane.await(next.ticket);
      } catch (RuntimeException | Error e) {
        return e;
      }
    }
  }

  /** Waits for those that nobody has waited for, and throws what the first failure threw. */
  void awaitAll() {
    while (true) {
      Pending next;
      synchronized (pending) {
        next = pending.peek();
      }
      if (next == null) {
        return;
      }
      next.await();
    }
  }
}
