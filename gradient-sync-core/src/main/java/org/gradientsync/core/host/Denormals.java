package org.gradientsync.core.host;

import org.gradientsync.UnavailableException;

/**
 * Whether the processor keeps denormal numbers. A mode that each thread has makes it flush them to
 * zero, which Java does not allow. Native libraries built with {@code -ffast-math} set this mode on
 * the thread that loads them.
 */
public final class Denormals {
  /** What users can do. */
  public static final String ADVICE =
      "a native library that was built with -ffast-math does this to the thread that loads it:"
          + " start the JVM with -XX:+RestoreMXCSROnJNICalls, or load the library on another thread";

  private static volatile float smallest = Float.MIN_VALUE; // not a constant for the compiler

  private Denormals() {}

  /**
   * Whether the processor flushes denormals to zero on this thread, so that sums may be wrong.
   * Takes a nanosecond.
   */
  public static boolean areFlushed() {
    float one = smallest;
    return Float.floatToRawIntBits(one + one) != 2;
  }

  /**
   * @throws UnavailableException if {@link #areFlushed}
   */
  static void requireKept() {
    if (areFlushed()) {
      throw new UnavailableException(
          "the processor takes denormal numbers for zero: thread=%s; %s"
              .formatted(Thread.currentThread().getName(), ADVICE));
    }
  }
}
