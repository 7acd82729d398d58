package org.gradientsync.spi;

import org.gradientsync.Device;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.ReduceOp;

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
