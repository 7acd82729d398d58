package org.gradientsync;

/**
 * An average that {@link GradientSync#averageAsync} has started. Any thread may use it, several at
 * a time.
 */
public interface PendingAverage {
  /**
   * Waits until the average is made: work enqueued later on the buffer's stream, and copies to the
   * host, find it. A second call returns or throws as the first one did.
   *
   * <p>The averages before it are made, too, by then. If one of them has failed, and nobody has
   * waited for it, this throws its exception. If nobody waits for later ones either, the next call
   * of the sync but {@link GradientSync#close} and {@link GradientSync#averageAsync} throws it, and
   * is not made.
   *
   * @throws RuntimeException what {@link GradientSync#average(DeviceBuffer)} throws
   */
  void await();
}
