package org.gradientsync.spi;

import java.util.List;
import org.gradientsync.Device;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.Event;
import org.gradientsync.ReduceOp;
import org.gradientsync.Stream;

/** What reducers need of a device. Calls on one device are ordered by its stream. */
public interface BackendDevice extends Device, AutoCloseable {
  /**
   * Reduces element by element, with the bits that {@link ReduceOp} promises. Ordered on the
   * target's stream; need not be finished when it returns. Allocates nothing.
   *
   * @param sources one buffer per rank, in rank order, all of the target's type and count
   * @param target where the result goes; may be one of the sources
   * @param op the reduction; AVERAGE divides by the number of sources
   */
  void reduce(DeviceBuffer[] sources, DeviceBuffer target, ReduceOp op);

  /**
   * Waits until all work enqueued on a buffer's stream so far is done.
   *
   * @param buffer a buffer of this device
   */
  void await(DeviceBuffer buffer);

  /**
   * The stream of buffers that were allocated without another.
   *
   * @return this device's own; not to be closed
   */
  Stream stream();

  /**
   * Makes a stream for work that is done beside that of {@link #stream()}, and first where the
   * device has to choose: synchronization under a backward pass.
   *
   * @param sparing whether it is to take only a part of the device
   * @return a stream that the caller closes
   */
  Stream createStream(boolean sparing);

  /**
   * Makes an event, to be recorded.
   *
   * @param timed whether its time will be asked for; without, it is cheaper
   * @return an event that the caller closes
   */
  Event createEvent(boolean timed);

  /**
   * The same memory as a buffer of another stream. Whoever uses both puts their work in order.
   *
   * @param stream a stream of this device
   * @param buffer a buffer of this device
   * @return a view, which ends with the buffer
   */
  DeviceBuffer on(Stream stream, DeviceBuffer buffer);

  /**
   * The stream that a buffer belongs to.
   *
   * @param buffer a buffer of this device
   * @return the stream given at allocation or to {@link #on}, or this device's own
   */
  Stream streamOf(DeviceBuffer buffer);

  /**
   * Copies all elements from FLOAT32 to a 16-bit type or back, in the order of the target's stream.
   * Rounds to nearest even; what is too large becomes infinity, and any NaN the canonical one.
   * Allocates nothing.
   *
   * @param source a buffer of this device
   * @param target as many elements as source; one of the two is FLOAT32, the other FLOAT16 or
   *     BFLOAT16
   * @throws IllegalArgumentException for other types, or if the counts differ
   */
  void convert(DeviceBuffer source, DeviceBuffer target);

  /**
   * Looks for a NaN or an infinity, after what has been enqueued on the buffer's stream, and waits
   * for the answer.
   *
   * @param buffer a buffer of this device
   * @return the index of such an element, the first where that costs nothing, or a negative number
   *     if there is none; always so for integers
   */
  long firstNotFinite(DeviceBuffer buffer);

  /**
   * What a report is to say of this device; called by any thread, while the device may be stuck, so
   * it waits for nothing.
   *
   * @return lines of text
   */
  default List<String> state() {
    return List.of();
  }

  /**
   * Sets who sees the copies of the buffers that this device makes from now on, and of their views.
   *
   * @param interceptor an interceptor
   */
  void intercept(CallInterceptor interceptor);

  /**
   * Who sees the copies of this device's buffers.
   *
   * @return what {@link #intercept} was given, or null
   */
  CallInterceptor interceptor();

  /**
   * Makes this device the calling thread's, for libraries that look at that: a GPU's context.
   * Cheap, and nothing to do for most devices.
   */
  default void makeCurrent() {}

  /**
   * Whether this device has been closed.
   *
   * @return true after {@link #close}
   */
  boolean isClosed();

  /**
   * Gives everything back. Buffers of the device can no longer be used. A second call does nothing.
   */
  @Override
  void close();
}
