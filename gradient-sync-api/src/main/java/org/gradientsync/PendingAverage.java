package org.gradientsync;

/** An average that {@link GradientSync#averageAsync} has started. Several threads may use it. */
public interface PendingAverage {
  /**
   * Waits until the average is made: work enqueued later on the buffer's stream, and copies to the
   * host, find it. A second call returns or throws as the first one did.
   *
   * <p>The averages before it are made, too, by then. If nobody waits for an average that fails,
   * the next call of the sync throws its exception, and is not made; {@link
   * GradientSync#averageAsync} does so once this rank has waited for a later one, for which all
   * ranks should wait. {@link GradientSync#close} throws it, too, after everything is released,
   * unless a rank was lost; it gives up averages that are not made yet.
   *
   * @throws RuntimeException what {@link GradientSync#average(DeviceBuffer)} throws
   */
  void await();
}
