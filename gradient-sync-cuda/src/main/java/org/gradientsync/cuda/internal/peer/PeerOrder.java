package org.gradientsync.cuda.internal.peer;

import jcuda.driver.CUstream;
import org.gradientsync.GradientSyncException;
import org.gradientsync.cuda.internal.driver.Gpu;
import org.gradientsync.cuda.internal.driver.GpuEvent;
import org.gradientsync.cuda.internal.driver.GpuStream;
import org.gradientsync.spi.Resources;

/**
 * Keeps the kernels of all ranks in the order of the calls, whatever the calls' streams. Its user
 * has a lock, but for {@link #isDone}. Nothing allocates.
 */
final class PeerOrder implements AutoCloseable {
  private final Gpu gpu;
  private final GpuEvent ordered;
  private volatile GpuStream last;

  /** Whether {@link #ordered} stands behind the last call on another stream. */
  private boolean left;

  PeerOrder(Gpu gpu) {
    this.gpu = gpu;
    ordered = GpuEvent.create(gpu, false);
  }

  /** Lets a stream wait for the call before. */
  void follow(GpuStream stream) {
    if (stream == last) {
      return;
    }
    if (last != null) {
      last.record(ordered);
      left = true;
    }
    if (left) {
      stream.waitFor(ordered);
    }
    last = stream;
  }

  /** Keeps the order when a stream goes, which {@link #isDone} does not ask from then on. */
  synchronized void streamCloses(CUstream closing) {
    GpuStream stream = last;
    if (stream != null && stream.hasHandle(closing)) {
      stream.record(ordered);
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
        gpu::makeCurrent,
        () -> {
          if (last != null) {
            gpu.waits().awaitEnd(last.handle(), null);
          } else if (left) {
            gpu.waits().awaitEnd(null, ordered.handle());
          }
        });
  }

  /**
   * Whether all calls are known to be done. For any thread: others may make calls and close
   * streams.
   */
  synchronized boolean isDone() {
    GpuStream asked = last;
    if (asked == null || asked.isClosed()) {
      return false;
    }
    CUstream handle = asked.handle();
    return !gpu.api().isCapturing(handle) && gpu.api().isDone(handle);
  }

  @Override
  public void close() {
    ordered.close();
  }
}
