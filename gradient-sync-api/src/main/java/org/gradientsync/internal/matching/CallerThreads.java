package org.gradientsync.internal.matching;

/** Which threads make this rank's calls, in all groups of the job. */
public final class CallerThreads {
  private long first; // the number of a thread, or 0
  private boolean several;

  /** Notes that a thread makes a call. */
  synchronized void record(Thread thread) {
    several |= first != 0 && first != thread.getId();
    first = thread.getId();
  }

  /** Whether one thread alone has made all calls. */
  public synchronized boolean isSingle() {
    return !several;
  }
}
