package org.gradientsync.spi;

import java.nio.file.Path;
import java.time.Duration;
import java.util.Objects;
import java.util.Optional;

/**
 * How long a group's ranks wait for each other, and what happens then.
 *
 * @param timeout after which a call throws; more than zero
 * @param late after which a call says in the log for whom it waits, and ranks that wait for each
 *     other in several communicators give up; more than zero
 * @param reports the folder in which a time-out leaves a folder with the ranks' reports, or empty
 *     for no reports
 */
public record Timeouts(Duration timeout, Duration late, Optional<Path> reports) {
  private static final Duration FOREVER =
      Duration.ofDays(36500); // what a long of nanoseconds can hold

  /**
   * Refuses what is missing.
   *
   * @param timeout more than zero
   * @param late more than zero
   * @param reports a folder, or empty
   */
  public Timeouts {
    Objects.requireNonNull(timeout, "timeout");
    Objects.requireNonNull(late, "late");
    Objects.requireNonNull(reports, "reports");
  }

  /**
   * The time-out as a number.
   *
   * @return nanoseconds, a hundred years at most
   */
  public long timeoutNanos() {
    return nanos(timeout);
  }

  /**
   * When to say something, as a number.
   *
   * @return nanoseconds, a hundred years at most
   */
  public long lateNanos() {
    return nanos(late);
  }

  private static long nanos(Duration duration) {
    return duration.compareTo(FOREVER) > 0 ? FOREVER.toNanos() : duration.toNanos();
  }
}
