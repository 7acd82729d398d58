package org.gradientsync.internal.ranks;

import java.time.Duration;
import java.util.function.LongSupplier;

/**
 * Measures how long a wait has lasted, without the time in which this process was suspended: by
 * SIGSTOP, a scheduler, or a paused container. Its ranks cannot come then, and none of them is
 * late.
 *
 * <p>A waiting thread looks at this clock many times in a second. Where it has not looked for
 * longer than {@link #MAX_PER_LOOK}, something kept it from running, and the rest does not count.
 * So a wait also lasts longer on a machine with far too little processor time.
 *
 * <p>For one thread at a time. Allocates nothing after it is made.
 */
public final class WaitClock {
  /** The most that one look adds. */
  static final Duration MAX_PER_LOOK = Duration.ofMillis(100);

  private static final long MAX_NANOS = MAX_PER_LOOK.toNanos();

  private final LongSupplier nanoTime;
  private long looked;
  private long waited;

  /** A clock that runs from now on. */
  public WaitClock() {
    this(System::nanoTime);
  }

  /**
   * As above, with a time of its own.
   *
   * @param nanoTime like {@link System#nanoTime}
   */
  WaitClock(LongSupplier nanoTime) {
    this.nanoTime = nanoTime;
    restart();
  }

  /** Begins anew, at zero. */
  public void restart() {
    looked = nanoTime.getAsLong();
    waited = 0;
  }

  /**
   * Looks at the time.
   *
   * @return how long the wait has lasted, in nanoseconds: 0 or more, and never less than before
   */
  public long look() {
    long now = nanoTime.getAsLong();
    waited += Math.min(now - looked, MAX_NANOS);
    looked = now;
    return waited;
  }

  /**
   * What the last look has found.
   *
   * @return nanoseconds, 0 or more
   */
  public long waited() {
    return waited;
  }
}
