package org.gradientsync;

import java.util.ArrayDeque;

/**
 * Carries out averages beside its caller's work, in the order in which they were handed over: for
 * reducers that block the host.
 */
final class CommunicationThread implements AutoCloseable {
  private final ArrayDeque<Runnable> waiting = new ArrayDeque<>();
  private final int rank;
  private final Thread thread;
  private long handedOver;
  private long carriedOut;
  private Throwable failure;
  private long failed; // the ticket of the work that did
  private boolean closed;

  CommunicationThread(int rank) {
    this.rank = rank;
    thread = new Thread(this::run, "gradient-sync-" + rank);
    thread.setDaemon(true);
    thread.start();
  }

  /**
   * Hands work over. What was handed over before comes first; after a failure nothing is carried
   * out.
   *
   * @return what {@link #await} takes
   * @throws IllegalStateException if this is closed
   */
  synchronized long hand(Runnable work) {
    if (closed) {
      throw new IllegalStateException(
          "sync is closed: rank=" + rank + "; close buckets before their sync");
    }
    waiting.add(work);
    handedOver++;
    notifyAll();
    return handedOver;
  }

  /**
   * Waits for work that was handed over.
   *
   * @throws RuntimeException what that work, or an earlier one, threw
   */
  synchronized void await(long ticket) {
    settle(ticket);
    if (failure == null || ticket < failed) {
      return;
    }
    if (failure instanceof Error e) {
      throw e;
    }
    throw (RuntimeException) failure;
  }

  /** Waits for work that was handed over, whatever becomes of it. */
  synchronized void settle(long ticket) {
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

  /** Waits for all that was handed over; nothing to do on the thread itself. */
  synchronized void awaitAll() {
    if (Thread.currentThread() != thread) {
      await(handedOver);
    }
  }

  private void run() {
    while (true) {
      Runnable work;
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
        work = failure == null ? waiting.remove() : drop();
      }
      Throwable thrown = null;
      try {
        work.run();
      } catch (RuntimeException | Error e) {
        thrown = e;
      }
      synchronized (this) {
        if (thrown != null) {
          fail(thrown);
        }
        carriedOut++;
        if (waiting.isEmpty()) {
          Thread.interrupted(); // was meant for what is done now
        }
        notifyAll();
      }
    }
  }

  /** From the work that is under way on. The first failure counts. */
  private synchronized void fail(Throwable thrown) {
    if (failure == null) {
      failure = thrown;
      failed = carriedOut + 1;
    }
  }

  private Runnable drop() {
    waiting.remove();
    return () -> {};
  }

  /**
   * Gives up what was handed over and has not been carried out, with an exception for whoever waits
   * for it. What is under way ends as if its thread had been interrupted. Returns when that is so.
   */
  void abandon(long ticket) {
    synchronized (this) {
      if (carriedOut >= ticket) {
        return;
      }
      fail(
          new IllegalStateException(
              "averages were given up in the middle of a step: rank="
                  + rank
                  + "; close the sync, it cannot be used any more"));
      thread.interrupt();
    }
    settle(ticket);
  }

  /** Ends the thread, and gives up what it has not carried out. */
  @Override
  public void close() {
    abandon(handed());
    synchronized (this) {
      closed = true;
      notifyAll();
    }
  }

  private synchronized long handed() {
    return handedOver;
  }
}
