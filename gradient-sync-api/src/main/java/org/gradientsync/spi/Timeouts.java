package org.gradientsync.spi;

import java.nio.file.Path;
import java.time.Duration;
import java.util.Optional;

/**
 * How long a group's ranks wait for each other, and where a time-out writes reports.
 *
 * @param timeout the time after which a call throws; more than zero
 * @param late the time after which a call logs for which ranks it waits, and after which calls end
 *     that deadlock across several communicators; more than zero
 * @param reports where a time-out creates a folder with the ranks' reports, or empty for none
 */
public record Timeouts(Duration timeout, Duration late, Optional<Path> reports) {
  private static final Duration FOREVER = Duration.ofDays(3650); // twenty fit a long of nanoseconds

  /** {@return the time-out in nanoseconds, ten years at most} */
  public long timeoutNanos() {
    return nanos(timeout);
  }

  /** {@return the time after which a call logs that it waits, in nanoseconds, ten years at most} */
  public long lateNanos() {
    return nanos(late);
  }

  /**
   * {@return a limit in nanoseconds, ten years at most, so that several of them can be added}
   *
   * @param duration how long to wait
   */
  public static long nanos(Duration duration) {
    return duration.compareTo(FOREVER) > 0 ? FOREVER.toNanos() : duration.toNanos();
  }
}
