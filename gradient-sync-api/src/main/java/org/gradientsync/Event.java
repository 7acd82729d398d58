package org.gradientsync;

/**
 * A marker in a {@link Stream}, as a CUDA event. It completes when all work enqueued before it is
 * done, and can record the time at which that happens. Any thread may use an event. On a GPU its
 * methods throw a {@link DeviceException} for an error of the driver. Do not use it once closed.
 */
public interface Event extends AutoCloseable {
  /**
   * Records this event after the work enqueued so far. This replaces an earlier recording.
   *
   * @param stream a stream of the device that created this event
   */
  void record(Stream stream);

  /**
   * {@return whether the work before this event is done, or it was never recorded} Does not block.
   */
  boolean isDone();

  /** Blocks the host until the work before this event is done. */
  void await();

  /**
   * {@return the time between two events of the same device, by the device's clock, in
   * milliseconds; negative if {@code later} completed first} Both must have been created with
   * timing, recorded, and completed.
   *
   * @param later the later event
   */
  double millisecondsTo(Event later);

  /** Releases the event. A second call does nothing. */
  @Override
  void close();
}
