package org.gradientsync.mpi.binding;

/**
 * How long a wait has taken, without the time for which this process was suspended. Whoever waits
 * looks at it several times a second. For one thread.
 */
public final class RunningTime {
  private static final long MOST_NANOS = 1_000_000_000; // that one look may add

  private long last = System.nanoTime();
  private long passed;

  /** Begins now. */
  public RunningTime() {}

  /**
   * Looks at the clock.
   *
   * @return nanoseconds since the beginning; a second at most since the last look
   */
  public long nanos() {
    long now = System.nanoTime();
    passed += Math.min(now - last, MOST_NANOS);
    last = now;
    return passed;
  }
}
