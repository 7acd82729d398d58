package org.gradientsync.cuda;

import org.gradientsync.Event;
import org.gradientsync.Stream;
import org.gradientsync.cuda.internal.driver.GpuEvent;

/**
 * A point in a stream that the host and other streams can wait for, and whose time can be taken.
 */
public final class CudaEvent implements Event {
  private final CudaDevice device;
  private final GpuEvent event;
  private final boolean timing;

  CudaEvent(CudaDevice device, GpuEvent event, boolean timing) {
    this.device = device;
    this.event = event;
    this.timing = timing;
  }

  /**
   * Places the event behind what is enqueued on a stream so far. A new place replaces the last one.
   *
   * @param stream a stream of this event's GPU
   */
  public void record(CudaStream stream) {
    device.requireOwn(stream);
    stream.driver().record(event);
  }

  @Override
  public void record(Stream stream) {
    record((CudaStream) stream);
  }

  /** Waits until the work before the event is done. */
  @Override
  public void await() {
    event.await();
  }

  /**
   * Whether the work before the event is done.
   *
   * @return true if it is, or if the event was never recorded
   */
  @Override
  public boolean isDone() {
    return event.isDone();
  }

  /**
   * The time between two events of the same GPU, taken on the GPU.
   *
   * @param end a later event; both have been recorded and are done
   * @return milliseconds, with a resolution of about half a microsecond
   * @throws IllegalStateException if one of them was made without timing
   */
  public float millisecondsTo(CudaEvent end) {
    if (!timing || !end.timing) {
      throw new IllegalStateException("event was made without timing: device=" + device.name());
    }
    return event.millisecondsTo(end.event);
  }

  @Override
  public double millisecondsTo(Event later) {
    return millisecondsTo((CudaEvent) later);
  }

  GpuEvent driver() {
    return event;
  }

  /** Destroys the event. A second call does nothing. */
  @Override
  public void close() {
    event.close();
  }
}
