package org.gradientsync.core.rendezvous;

/** The threads that make this rank's calls, in all groups of the job. */
public final class CallerThreads {
  private long last; // the id of a thread, or 0
  private boolean several;

  synchronized void record(Thread thread) {
    several |= last != 0 && last != thread.getId();
    last = thread.getId();
  }

  /** Whether one thread has made all calls. */
  public synchronized boolean isSingle() {
    return !several;
  }
}
