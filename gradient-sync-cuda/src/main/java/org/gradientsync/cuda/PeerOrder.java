package org.gradientsync.cuda;

import jcuda.driver.CUstream;
import org.gradientsync.GradientSyncException;
import org.gradientsync.spi.Resources;

/**
 * Keeps the kernels of all ranks in the order of the calls, whatever the calls' streams. Its user
 * has a lock, but for {@link #isDone}. Nothing allocates.
 */
final class PeerOrder implements AutoCloseable {
  private final CudaDevice device;
  private final CudaEvent ordered;
  private volatile CudaStream last;

  /** Whether {@link #ordered} stands behind the last call on another stream. */
  private boolean left;

  PeerOrder(CudaDevice device) {
    this.device = device;
    ordered = device.createEvent(false);
  }

  /** Lets a stream wait for the call before. */
  void follow(CudaStream stream) {
    if (stream == last) {
      return;
    }
    if (last != null) {
      ordered.record(last);
      left = true;
    }
    if (left) {
      stream.waitFor(ordered);
    }
    last = stream;
  }

  /** Keeps the order when a stream goes, which {@link #isDone} does not ask from then on. */
  synchronized void streamCloses(CudaStream stream) {
    if (stream == last) {
      ordered.record(stream);
      left = true;
      last = null;
    }
  }

  /**
   * Waits for all calls so far; not for those in graphs of which nobody tells.
   *
   * @throws GradientSyncException what those have found who look around meanwhile
   */
  void await() {
    Resources.closeAll(
        device::makeCurrent,
        () -> {
          if (last != null) {
            device.awaitEnd(last.handle(), null);
          } else if (left) {
            device.awaitEnd(null, ordered.handle());
          }
        });
  }

  /**
   * Whether all calls are known to be done. For any thread: others may make calls and close
   * streams.
   */
  synchronized boolean isDone() {
    CudaStream asked = last;
    if (asked == null || asked.isClosed()) {
      return false;
    }
    CUstream handle = asked.handle();
    return !device.api().isCapturing(handle) && device.api().isDone(handle);
  }

  @Override
  public void close() {
    ordered.close();
  }
}
