package org.gradientsync;

/**
 * A queue of work for a device, as a CUDA stream: the device does the work of one stream in order,
 * and that of different streams concurrently. On the host every call is complete when it returns,
 * so streams have nothing to wait for. Any thread may use a stream. On a GPU its methods throw a
 * {@link DeviceException} for an error of the driver. Do not use it after it is closed.
 */
public interface Stream extends AutoCloseable {
  /**
   * Makes work that is enqueued on this stream later wait for an event. Does not block the host.
   *
   * @param event an event of the same device; if it was never recorded, nothing waits
   */
  void waitFor(Event event);

  /** Blocks the host until all work enqueued so far is done. */
  void await();

  /**
   * {@return whether this stream is being captured into a graph; false on devices without graphs}
   * Captured work does not run, so its events have no times.
   */
  default boolean isCapturing() {
    return false;
  }

  /** Releases the stream. Work enqueued earlier still runs. A second call does nothing. */
  @Override
  void close();
}
