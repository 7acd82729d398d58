package org.gradientsync.cuda;

import org.gradientsync.Event;
import org.gradientsync.Stream;
import org.gradientsync.cuda.internal.driver.GpuEvent;

/** A marker in a stream. The host and other streams can wait for it, and it can record its time. */
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
   * Records this event after the work enqueued on a stream so far. Recording again replaces the
   * earlier recording.
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

  /** Blocks the host until the work before this event is done. */
  @Override
  public void await() {
    event.await();
  }

  /**
   * {@return whether the work before this event is done, or the event was never recorded} Does not
   * block.
   */
  @Override
  public boolean isDone() {
    return event.isDone();
  }

  /**
   * The time between two events of the same GPU, by the GPU's clock.
   *
   * @param end the later event; both must have been recorded and be done
   * @return milliseconds, with a resolution of about half a microsecond
   * @throws IllegalStateException if one of the events was created without timing
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
