package org.gradientsync.core.backend;

import java.time.Duration;
import java.util.function.LongSupplier;

/**
 * Measures the duration of a wait, without the time in which this process was suspended by SIGSTOP,
 * a scheduler, or a paused container. Other ranks must not appear late because this one was
 * suspended.
 *
 * <p>A waiting thread reads this clock many times a second. If it has not read it for longer than
 * {@link #MAX_PER_LOOK}, something kept the thread from running, and the excess does not count. So
 * a wait also lasts longer on an overloaded machine.
 *
 * <p>For one thread at a time. Allocates nothing after construction.
 */
public final class WaitClock {
  /** The maximum that one look adds. */
  static final Duration MAX_PER_LOOK = Duration.ofMillis(100);

  private final LongSupplier nanoTime;
  private final long maxNanos; // per look
  private long looked;
  private long waited;

  /** Starts now. */
  public WaitClock() {
    this(MAX_PER_LOOK);
  }

  /**
   * Starts now.
   *
   * @param maxPerLook the maximum that one look adds, for a thread that looks less often
   */
  public WaitClock(Duration maxPerLook) {
    this(System::nanoTime, maxPerLook);
  }

  /**
   * For tests.
   *
   * @param nanoTime like {@link System#nanoTime}
   */
  WaitClock(LongSupplier nanoTime) {
    this(nanoTime, MAX_PER_LOOK);
  }

  private WaitClock(LongSupplier nanoTime, Duration maxPerLook) {
    this.nanoTime = nanoTime;
    maxNanos = maxPerLook.toNanos();
    restart();
  }

  /** Resets the clock to zero. */
  public void restart() {
    looked = nanoTime.getAsLong();
    waited = 0;
  }

  /** {@return the duration of the wait in nanoseconds, never less than before} Reads the clock. */
  public long look() {
    long now = nanoTime.getAsLong();
    waited += Math.min(now - looked, maxNanos);
    looked = now;
    return waited;
  }

  /** {@return the duration of the wait in nanoseconds, as the last {@link #look} returned it} */
  public long waited() {
    return waited;
  }
}
