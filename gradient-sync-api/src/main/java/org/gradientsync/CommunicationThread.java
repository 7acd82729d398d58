package org.gradientsync;

import java.util.ArrayDeque;

/**
 * Carries out averages beside its caller's work, in the order in which they were handed over: for
 * reducers that block the host.
 */
final class CommunicationThread implements AutoCloseable {
  private final ArrayDeque<Runnable> waiting = new ArrayDeque<>();
  private final Thread thread;
  private long handedOver;
  private long carriedOut;
  private Throwable failure;
  private boolean closed;

  CommunicationThread(int rank) {
    thread = new Thread(this::run, "gradient-sync-" + rank);
    thread.setDaemon(true);
    thread.start();
  }

  /**
   * Hands work over. What was handed over before comes first; after a failure nothing is carried
   * out.
   *
   * @return what {@link #await} takes
   */
  synchronized long hand(Runnable work) {
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
    if (failure instanceof RuntimeException e) {
      throw e;
    } else if (failure instanceof Error e) {
      throw e;
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
            // whoever interrupted waits for work that is already done
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
        carriedOut++;
        failure = failure == null ? thrown : failure;
        notifyAll();
      }
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
      if (failure == null) {
        failure = new IllegalStateException("given up in the middle of a step");
      }
      thread.interrupt();
    }
    try {
      await(ticket);
    } catch (IllegalStateException | GradientSyncException e) {
      // nobody wants what was given up
    }
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
