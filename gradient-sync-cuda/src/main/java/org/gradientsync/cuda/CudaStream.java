package org.gradientsync.cuda;

import jcuda.driver.CUstream;

/**
 * A queue of work on one GPU. What is enqueued on a stream runs in order; the host does not wait
 * for it.
 *
 * <p>Safe for use by several threads; the order of their calls is then theirs to keep.
 */
public final class CudaStream implements AutoCloseable {
  private final CudaDevice device;
  private final CUstream stream;
  private final boolean own;
  private boolean closed;

  CudaStream(CudaDevice device, CUstream stream, boolean own) {
    this.device = device;
    this.stream = stream;
    this.own = own;
  }

  /**
   * The GPU that it belongs to.
   *
   * @return its device
   */
  public CudaDevice device() {
    return device;
  }

  /** Waits until everything enqueued so far is done. */
  public void await() {
    device.makeCurrent();
    device.api().awaitStream(handle());
  }

  /**
   * Lets what is enqueued here later wait for an event.
   *
   * @param event recorded on any stream, of this GPU or another
   */
  public void waitFor(CudaEvent event) {
    device.makeCurrent();
    device.api().streamWaitsFor(handle(), event.handle());
  }

  CUstream handle() {
    if (closed) {
      throw new IllegalStateException("stream is closed: device=" + device.name());
    }
    return stream;
  }

  /**
   * Destroys the stream, if it was made here; what is enqueued still runs. A second call does
   * nothing.
   */
  @Override
  public void close() {
    if (!closed) {
      closed = true;
      if (own) {
        device.makeCurrent();
        device.api().destroyStream(stream);
      }
    }
  }
}
