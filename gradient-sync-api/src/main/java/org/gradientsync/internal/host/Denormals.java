package org.gradientsync.internal.host;

import org.gradientsync.GradientSyncException;

/**
 * Whether the processor keeps numbers that are smaller than the smallest normal one. It has a mode
 * for each thread in which it takes them for zero, which Java does not allow; native libraries that
 * were built with {@code -ffast-math} set it on the thread that loads them.
 */
public final class Denormals {
  /** What a user can do. */
  public static final String ADVICE =
      "a native library that was built with -ffast-math does this to the thread that loads it:"
          + " start the JVM with -XX:+RestoreMXCSROnJNICalls, or load the library on another thread";

  private static volatile float smallest = Float.MIN_VALUE; // not known to the compiler

  private Denormals() {}

  /**
   * Whether the processor takes them for zero on this thread. Takes a nanosecond.
   *
   * @return true if sums may be wrong
   */
  public static boolean areFlushed() {
    float one = smallest;
    return Float.floatToRawIntBits(one + one) != 2;
  }

  /**
   * Refuses to go on where sums may be wrong.
   *
   * @throws GradientSyncException if {@link #areFlushed}
   */
  static void requireKept() {
    if (areFlushed()) {
      throw new GradientSyncException(
          "the processor takes denormal numbers for zero: thread="
              + Thread.currentThread().getName()
              + "; "
              + ADVICE);
    }
  }
}
