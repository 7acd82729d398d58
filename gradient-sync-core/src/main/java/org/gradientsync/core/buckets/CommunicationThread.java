package org.gradientsync.core.buckets;

import java.util.ArrayDeque;
import java.util.Objects;
import java.util.function.BiConsumer;
import org.gradientsync.GradientBuckets;
import org.gradientsync.GradientSyncException;
import org.gradientsync.MismatchedCallException;
import org.gradientsync.NotFiniteException;
import org.gradientsync.RankLostException;
import org.gradientsync.core.diagnosis.WorkerThread;

/**
 * Runs averages concurrently with its callers' work, in the order of submission. For reducers that
 * block the host. Each {@link GradientBuckets} has its own lane. If work of a lane fails, the
 * thread skips the rest of that lane's work.
 *
 * <p>Failures that every rank detects end only their lane. If a gradient is not finite, all ranks
 * skip the same averages. If calls do not match, another rank may have run another lane's work; the
 * rest of both lanes does not match either, because the ranks compare the buckets' names. If a rank
 * is lost, the sync's other calls detect that themselves. Any other failure ends all lanes, because
 * the other ranks would wait for averages that this rank does not make, and breaks the sync.
 */
public final class CommunicationThread implements AutoCloseable {
  private final ArrayDeque<Runnable> waiting = new ArrayDeque<>();
  private final ArrayDeque<Lane> lanes = new ArrayDeque<>(); // the lane of each waiting element
  private final int rank;
  private final BiConsumer<String, Throwable> giveUp;
  private final WorkerThread thread;
  private long submitted; // the ticket of the last work that was submitted
  private long completed; // the ticket of the last work that is complete
  private Throwable endOfAll; // the failure that ended all lanes, or null
  private long endTicket; // the ticket of the work that failed
  private volatile Thread caller; // the last one that submitted work
  private boolean cancelled; // what was not complete, by close
  private boolean closed;

  /**
   * @param giveUp breaks the sync, so that other ranks do not wait; takes a reason and its cause
   */
  public CommunicationThread(int rank, BiConsumer<String, Throwable> giveUp) {
    this.rank = rank;
    this.giveUp = giveUp;
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
    private Throwable failure; // of this lane's work, or null
    private long failedTicket; // the ticket of the work that failed

    private Lane() {}

    /**
     * Submits work, which runs after all work submitted earlier. After a failure it is skipped.
     * Once the queues have grown, this allocates nothing.
     *
     * @return a ticket for {@link #await}
     * @throws IllegalStateException if the thread is closed
     */
    public long submit(Runnable work) {
      synchronized (CommunicationThread.this) {
        if (closed) {
          throw new IllegalStateException(
              "sync is closed: rank=" + rank + "; close buckets before their sync");
        }
        caller = Thread.currentThread();
        waiting.add(work);
        lanes.add(this);
        CommunicationThread.this.notifyAll();
        return ++submitted;
      }
    }

    /**
     * Waits for work that was submitted.
     *
     * @throws RuntimeException the exception of that work, or of earlier work of this lane
     * @throws IllegalStateException on the communication thread itself, in a hook or a listener, if
     *     that work comes later
     */
    public void await(long ticket) {
      synchronized (CommunicationThread.this) {
        if (isCurrent() && completed < ticket) {
          throw new IllegalStateException(
              "a hook or a listener waits for a later average: rank="
                  + rank
                  + "; wait for it after the hook or listener has returned");
        }
        awaitTicket(ticket);
        if (failure != null && ticket >= failedTicket) {
          // the stack trace is that of the communication thread and does not show the caller
          failure.addSuppressed(new Throwable("rank " + rank + " waited for it here"));
          if (failure instanceof Error e) {
            throw e;
          }
          throw (RuntimeException) failure;
        }
        if (endOfAll != null && ticket >= endTicket) {
          throw broken();
        }
      }
    }

    /** Whether work that was submitted is complete. */
    public boolean isOver(long ticket) {
      synchronized (CommunicationThread.this) {
        return completed >= ticket;
      }
    }

    /** Whether work that was submitted is complete, and has not failed. */
    public boolean hasSucceeded(long ticket) {
      synchronized (CommunicationThread.this) {
        return completed >= ticket && failure == null && endOfAll == null;
      }
    }

    /** What this lane's work has thrown, or null. */
    public Throwable failure() {
      synchronized (CommunicationThread.this) {
        return failure;
      }
    }

    /** Waits for work that was submitted, whether it fails or not. */
    void settle(long ticket) {
      awaitTicket(ticket);
    }

    /**
     * Cancels all work that is running or waiting, unless this lane has failed before. Interrupts
     * running work. Returns when all work up to the ticket, including other lanes', has ended.
     */
    void abandon(long ticket) {
      synchronized (CommunicationThread.this) {
        if (completed < ticket && failure == null) {
          cancelAll();
        }
        awaitTicket(ticket);
      }
    }
  }

  /** Creates a lane for one caller's work. */
  public Lane lane() {
    return new Lane();
  }

  private IllegalStateException givenUp(Throwable thrown) {
    IllegalStateException e = broken();
    e.addSuppressed(thrown); // the rank may really have been lost
    return e;
  }

  private IllegalStateException broken() {
    if (cancelled) {
      return new IllegalStateException(endOfAll.getMessage());
    }
    return new IllegalStateException(
        "sync is broken by an earlier failure in the background, rank="
            + rank
            + ": "
            + Objects.requireNonNullElse(endOfAll.getMessage(), endOfAll.toString()),
        endOfAll);
  }

  private synchronized void awaitTicket(long ticket) {
    boolean interrupted = false;
    while (completed < ticket) {
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

  /** Whether the caller runs on this thread, which must not wait for its own work. */
  public boolean isCurrent() {
    return Thread.currentThread() == thread;
  }

  /**
   * Waits for all work that was submitted. Does nothing on the communication thread itself.
   *
   * @throws RuntimeException if all lanes have ended after a failure
   */
  public synchronized void awaitAll() {
    if (isCurrent()) {
      return;
    }
    awaitTicket(submitted);
    if (endOfAll != null) {
      throw broken();
    }
  }

  private void run() {
    while (true) {
      Runnable work;
      Lane lane;
      boolean skipped;
      synchronized (this) {
        while (waiting.isEmpty()) {
          if (closed) {
            return;
          }
          try {
            wait();
          } catch (InterruptedException e) {
            if (!waiting.isEmpty()) {
              thread.interrupt(); // meant for work that has just been submitted
            }
          }
        }
        lane = lanes.remove();
        work = waiting.remove();
        skipped = endOfAll != null || lane.failure != null;
      }
      Throwable thrown = null;
      try {
        if (!skipped) {
          work.run();
        }
      } catch (RuntimeException | Error e) {
        thrown = e;
      } catch (Exception e) { // which other languages do not declare
        thrown = new GradientSyncException("a call has thrown: rank=" + rank + ", error=" + e, e);
      }
      boolean endsAll = thrown != null && !endsItsLaneOnly(thrown);
      if (endsAll) {
        giveUp(thrown);
      }
      synchronized (this) {
        completed++;
        if (thrown != null) {
          lane.failure =
              cancelled && thrown instanceof RankLostException ? givenUp(thrown) : thrown;
          lane.failedTicket = completed;
        }
        if (endsAll) {
          endAll(thrown, completed);
        }
        if (waiting.isEmpty()) {
          Thread.interrupted(); // was meant for work that is complete
        }
        notifyAll();
      }
    }
  }

  private void giveUp(Throwable thrown) {
    try {
      giveUp.accept("a call in the background has failed: error=" + thrown, thrown);
    } catch (RuntimeException | Error e) { // this rank ends anyway
      thrown.addSuppressed(e);
    }
  }

  /** Whether all ranks find this failure themselves. */
  private static boolean endsItsLaneOnly(Throwable thrown) {
    return thrown instanceof NotFiniteException
        || thrown instanceof MismatchedCallException
        || thrown instanceof RankLostException;
  }

  /** Records the failure that ends all lanes; the first one counts. */
  private void endAll(Throwable thrown, long from) {
    if (endOfAll == null) {
      endOfAll = thrown;
      endTicket = from;
    }
  }

  /** Interrupts the running work, and ends all lanes. */
  private synchronized void cancelAll() {
    endAll(
        new IllegalStateException(
            "averages were given up in the middle of a step: rank="
                + rank
                + "; close the sync, it cannot be used any more"),
        completed + 1);
    thread.interrupt();
  }

  /** Cancels work that is not complete, and ends the thread. */
  @Override
  public void close() {
    long last;
    synchronized (this) {
      last = submitted;
      if (completed < last) {
        cancelled |= endOfAll == null;
        endAll(
            new IllegalStateException(
                "averages were given up, because their sync was closed: rank="
                    + rank
                    + "; await() them before"),
            completed + 1);
        thread.interrupt("its sync was closed");
      }
    }
    awaitTicket(last);
    synchronized (this) {
      closed = true;
      notifyAll();
    }
  }
}
