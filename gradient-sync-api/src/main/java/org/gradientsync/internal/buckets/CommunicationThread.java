package org.gradientsync.internal.buckets;

import java.util.ArrayDeque;
import org.gradientsync.GradientBuckets;
import org.gradientsync.MismatchedCallException;
import org.gradientsync.NotFiniteException;
import org.gradientsync.RankLostException;
import org.gradientsync.internal.diagnosis.WorkerThread;

/**
 * Carries out averages beside its callers' work, in the order in which they were handed over: for
 * reducers that block the host. Each {@link GradientBuckets} has a lane of its own, and the thread
 * ends what is left of a lane when something in it fails.
 *
 * <p>What all ranks are told of is the end of that lane only. If a gradient is not finite, all
 * ranks leave out the same averages. If calls do not match, it may be another lane's on another
 * rank; what is left of the two does not match either, by the buckets' names. The loss of a rank is
 * found out by the sync's other calls for themselves. Whatever else fails is the end of all lanes:
 * the other ranks wait for averages that this one does not make.
 */
public final class CommunicationThread implements AutoCloseable {
  private final ArrayDeque<Runnable> waiting = new ArrayDeque<>();
  private final ArrayDeque<Lane> lanes = new ArrayDeque<>(); // of what waits
  private final int rank;
  private final Thread thread;
  private long handedOver;
  private long carriedOut;
  private Throwable endOfAll; // what was the end of all lanes, or null
  private long endedAt; // the ticket of the work that failed
  private volatile Thread caller; // that has handed over last
  private boolean closed;

  public CommunicationThread(int rank) {
    this.rank = rank;
    thread =
        new WorkerThread(this::run, "gradient-sync-" + rank) {
          @Override
          public Thread requester() {
            return caller;
          }
        };
    thread.setDaemon(true);
    thread.start();
  }

  /** The work of one caller. */
  public final class Lane {
    private Throwable failure; // of this lane's work
    private long failed;

    private Lane() {}

    /**
     * Hands work over. What was handed over before comes first; after a failure nothing is carried
     * out. Allocates nothing in the long run.
     *
     * @return what {@link #await} takes
     * @throws IllegalStateException if the thread is closed
     */
    public long hand(Runnable work) {
      synchronized (CommunicationThread.this) {
        if (closed) {
          throw new IllegalStateException(
              "sync is closed: rank=" + rank + "; close buckets before their sync");
        }
        caller = Thread.currentThread();
        waiting.add(work);
        lanes.add(this);
        CommunicationThread.this.notifyAll();
        return ++handedOver;
      }
    }

    /**
     * Waits for work that was handed over.
     *
     * @throws RuntimeException what that work, or an earlier one, threw
     */
    public void await(long ticket) {
      synchronized (CommunicationThread.this) {
        settle(ticket);
        if (failure != null && ticket >= failed) {
          // its trace is this thread's, which says nothing of who waited
          failure.addSuppressed(new Throwable("rank " + rank + " waited for it here"));
          if (failure instanceof Error e) {
            throw e;
          }
          throw (RuntimeException) failure;
        }
        if (endOfAll != null && ticket >= endedAt) {
          throw broken();
        }
      }
    }

    /**
     * Gives up what was handed over and has not been carried out, unless this lane has failed
     * before. What is under way ends as if its thread had been interrupted. Returns when that is
     * so, and other lanes' work that was handed over before has ended, too.
     */
    void abandon(long ticket) {
      synchronized (CommunicationThread.this) {
        if (carriedOut < ticket && failure == null) {
          giveUp();
        }
        settle(ticket);
      }
    }
  }

  /** For one caller's work. */
  public Lane lane() {
    return new Lane();
  }

  private IllegalStateException broken() {
    return new IllegalStateException(
        "sync is broken by an earlier failure in gradient buckets, rank="
            + rank
            + ": "
            + endOfAll.getMessage(),
        endOfAll);
  }

  private synchronized void settle(long ticket) {
    boolean interrupted = false;
    while (carriedOut < ticket) {
      try {
        wait();
      } catch (InterruptedException e) {
        interrupted = true;
        thread.interrupt(); // ends its wait for other ranks
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  /**
   * Waits for all that was handed over; nothing to do on the thread itself.
   *
   * @throws RuntimeException if the other ranks wait for averages that are not made any more
   */
  public synchronized void awaitAll() {
    if (Thread.currentThread() == thread) {
      return;
    }
    settle(handedOver);
    if (endOfAll != null) {
      throw broken();
    }
  }

  private void run() {
    while (true) {
      Runnable work;
      Lane lane;
      boolean over;
      synchronized (this) {
        while (waiting.isEmpty()) {
          if (closed) {
            return;
          }
          try {
            wait();
          } catch (InterruptedException e) {
            if (!waiting.isEmpty()) {
              thread.interrupt(); // meant for what has just been handed over
            }
          }
        }
        lane = lanes.remove();
        work = waiting.remove();
        over = endOfAll != null || lane.failure != null;
      }
      Throwable thrown = null;
      try {
        if (!over) {
          work.run();
        }
      } catch (RuntimeException | Error e) {
        thrown = e;
      }
      synchronized (this) {
        carriedOut++;
        if (thrown != null) {
          lane.failure = thrown;
          lane.failed = carriedOut;
          if (!endsItsLaneOnly(thrown)) {
            fail(thrown, carriedOut);
          }
        }
        if (waiting.isEmpty()) {
          Thread.interrupted(); // was meant for what is done now
        }
        notifyAll();
      }
    }
  }

  private static boolean endsItsLaneOnly(Throwable thrown) {
    return thrown instanceof NotFiniteException
        || thrown instanceof MismatchedCallException
        || thrown instanceof RankLostException;
  }

  /** The first failure counts. */
  private void fail(Throwable thrown, long from) {
    if (endOfAll == null) {
      endOfAll = thrown;
      endedAt = from;
    }
  }

  /** The work that is under way, and all that waits. */
  private synchronized void giveUp() {
    fail(
        new IllegalStateException(
            "averages were given up in the middle of a step: rank="
                + rank
                + "; close the sync, it cannot be used any more"),
        carriedOut + 1);
    thread.interrupt();
  }

  /** Ends the thread, and gives up what it has not carried out. */
  @Override
  public void close() {
    long last;
    synchronized (this) {
      last = handedOver;
      if (carriedOut < last) {
        giveUp();
      }
    }
    settle(last);
    synchronized (this) {
      closed = true;
      notifyAll();
    }
  }
}
