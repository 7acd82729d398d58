package org.gradientsync;

/** Where a rank's gradients live: one GPU, or the host's memory. */
public interface Device {
  /**
   * The device as a person would call it.
   *
   * @return for example {@code host memory}
   */
  String name();

  /**
   * The kind of memory, as {@link GradientSync.Builder#device(String)} takes it.
   *
   * @return {@code host} or {@code cuda}
   */
  String kind();

  /**
   * Allocates a buffer; its contents are zero.
   *
   * @param type the element type
   * @param count the number of elements, 0 or more
   * @return a buffer that the caller closes
   * @throws IllegalArgumentException if count is negative or larger than the device can address
   * @throws GradientSyncException if there is not enough memory
   * @throws IllegalStateException if the device is closed
   */
  DeviceBuffer allocate(DataType type, long count);
}
