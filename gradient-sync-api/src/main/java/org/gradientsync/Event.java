package org.gradientsync;

/** A place in a {@link Stream}, and the time at which the work before it was done. */
public interface Event extends AutoCloseable {
  /**
   * Places it behind what is enqueued so far. A new place replaces the last one.
   *
   * @param stream a stream of the device that made this event
   */
  void record(Stream stream);

  /**
   * Whether the work before it is done.
   *
   * @return true if it is, or if the event was never recorded
   */
  boolean isDone();

  /** Blocks the host until the work before it is done. */
  void await();

  /**
   * The time between two events of the same device, by the device's clock.
   *
   * @param later both were made with timing, have been recorded, and are done
   * @return milliseconds; negative if it is in fact the earlier one
   */
  double millisecondsTo(Event later);

  /** Gives it up. A second call does nothing. */
  @Override
  void close();
}
