package org.gradientsync;

/** The memory and processor that hold and reduce a rank's gradients: one GPU, or the host. */
public interface Device {
  /** {@return the device's name for logs, for example {@code host memory}} */
  String name();

  /**
   * {@return the kind of memory, as {@link GradientSync.Builder#device(String)} takes it: {@code
   * host} or {@code cuda}}
   */
  String kind();

  /**
   * {@return a new buffer filled with zeros, which the caller closes}
   *
   * @param type the element type
   * @param count the number of elements, 0 or more
   * @throws IllegalArgumentException if count is negative or larger than the device can address
   * @throws GradientSyncException if there is not enough memory
   * @throws IllegalStateException if the device is closed
   */
  DeviceBuffer allocate(DataType type, long count);
}
