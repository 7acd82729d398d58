package org.gradientsync.core.backend;

import java.math.BigDecimal;
import java.math.MathContext;
import java.time.Duration;

/** Times and sizes in texts for people: three digits, in the unit that suits them. */
public final class Amounts {
  private static final long SECOND = 1_000_000_000;
  private static final long MINUTE = 60 * SECOND;

  private Amounts() {}

  /**
   * A time, for example {@code 5 min}, {@code 90 s}, {@code 2.5 s}, {@code 600 ms}.
   *
   * @param duration zero or more
   * @return the text, in days from a year on
   */
  public static String time(Duration duration) {
    return duration.compareTo(Duration.ofDays(365)) < 0
        ? time(duration.toNanos())
        : duration.toDays() + " days"; // nanoseconds do not fit a long after 292 years
  }

  /**
   * {@return a time in nanoseconds as text}
   *
   * @param nanos zero or more
   */
  public static String time(long nanos) {
    if (nanos >= 2 * MINUTE && nanos % MINUTE == 0) {
      return nanos / MINUTE + " min";
    }
    return nanos >= SECOND
        ? digits(nanos, SECOND) + " s"
        : nanos >= 1_000_000
            ? digits(nanos, 1_000_000) + " ms"
            : nanos >= 1_000 ? digits(nanos, 1_000) + " us" : nanos + " ns";
  }

  /**
   * {@return a size, for example {@code 512 B}, {@code 1.05 MB}; a KB has 1000 bytes}
   *
   * @param bytes zero or more
   */
  public static String bytes(long bytes) {
    return bytes >= 1_000_000_000
        ? digits(bytes, 1_000_000_000) + " GB"
        : bytes >= 1_000_000
            ? digits(bytes, 1_000_000) + " MB"
            : bytes >= 1_000 ? digits(bytes, 1_000) + " KB" : bytes + " B";
  }

  private static String digits(long amount, long unit) {
    return amount / unit >= 100
        ? String.valueOf((amount + unit / 2) / unit)
        : BigDecimal.valueOf(amount)
            .divide(BigDecimal.valueOf(unit), new MathContext(3))
            .stripTrailingZeros()
            .toPlainString();
  }
}
