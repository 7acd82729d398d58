package org.gradientsync.cuda.internal.peer;

import java.util.function.BooleanSupplier;
import jcuda.driver.CUstream;
import org.gradientsync.DeviceException;
import org.gradientsync.GradientSyncException;
import org.gradientsync.cuda.internal.driver.Gpu;
import org.gradientsync.cuda.internal.driver.GpuEvent;
import org.gradientsync.cuda.internal.driver.GpuStream;
import org.gradientsync.spi.DeviceCalls;
import org.gradientsync.spi.Resources;

/**
 * Keeps this rank's kernels in the order of its calls, so that all ranks run them in the same
 * order: makes the stream of a call wait for the call before, if that was on another stream. The
 * caller holds the group's lock, unless a method says that any thread may call it. This object's
 * own lock keeps the last stream open while another thread queries it.
 */
final class PeerOrder implements AutoCloseable {
  private final Gpu gpu;
  private final DeviceCalls calls;
  private final GpuEvent ordered;
  private final BooleanSupplier isIdle = this::isIdle;
  private volatile GpuStream last;

  /** Whether {@link #ordered} was recorded, behind the last call on an earlier stream. */
  private boolean recorded;

  /** The number of the last call that was enqueued or failed. */
  private volatile long lastCall;

  private volatile boolean enqueuing;

  PeerOrder(Gpu gpu, DeviceCalls calls) {
    this.gpu = gpu;
    this.calls = calls;
    ordered = GpuEvent.create(gpu, false);
    gpu.gate().add(isIdle);
  }

  /**
   * Makes the stream of the next call wait for the call before. The caller then enqueues the next
   * one and calls {@link #endEnqueuing}. Allocates nothing.
   */
  void follow(GpuStream stream) {
    beginEnqueuing();
    if (stream == last) {
      return;
    }
    if (last != null) {
      last.record(ordered);
      recorded = true;
    }
    if (recorded) {
      stream.waitFor(ordered);
    }
    last = stream;
  }

  /** Notes that kernels are about to be enqueued, until {@link #endEnqueuing}. */
  void beginEnqueuing() {
    enqueuing = true;
    gpu.gate().pass();
  }

  /** Notes that the last call that was counted has been enqueued, or has failed. */
  void endEnqueuing() {
    lastCall = calls.pending();
    enqueuing = false;
  }

  /**
   * Whether none of this rank's kernels runs or is being enqueued, as far as that can be found out:
   * not while the last stream is being captured. Any thread may call it.
   */
  private synchronized boolean isIdle() {
    try {
      if (enqueuing || last == null) {
        return !enqueuing && (!recorded || ordered.isDone());
      }
      return !last.isClosed() && gpu.api().isCapturing(last.handle()) || isDone();
    } catch (DeviceException e) {
      return true; // nothing runs on a GPU that has failed
    }
  }

  /**
   * Records that all calls are done, if they are: the host may have waited for something else. Any
   * thread may call it.
   */
  void settle() {
    long call = lastCall;
    // Compare twice: in between, another thread may have counted its next call, and isDone may have
    // queried the stream of that call.
    if (calls.pending() == call && isDone() && calls.pending() == call) {
      calls.done(call);
    }
  }

  /**
   * Keeps the order when a stream closes. From then on {@link #settle} does not query the stream.
   */
  synchronized void streamCloses(CUstream closing) {
    GpuStream stream = last;
    if (stream != null && stream.hasHandle(closing)) {
      stream.record(ordered);
      recorded = true;
      last = null;
    }
  }

  /**
   * Waits for all calls so far, except for those in graphs that were launched without the library.
   *
   * @throws GradientSyncException if a watchdog finds a failure meanwhile
   */
  void await() {
    Resources.closeAll(
        gpu::makeCurrent,
        () -> {
          if (last != null) {
            gpu.waits().awaitEnd(last.handle(), null);
          } else if (recorded) {
            gpu.waits().awaitEnd(null, ordered.handle());
          }
        });
  }

  /** Whether all calls are known to be done, while other threads make calls and close streams. */
  private synchronized boolean isDone() {
    GpuStream stream = last;
    if (stream == null || stream.isClosed()) {
      return false;
    }
    CUstream handle = stream.handle();
    return !gpu.api().isCapturing(handle) && gpu.api().isDone(handle);
  }

  @Override
  public void close() {
    gpu.gate().remove(isIdle);
    ordered.close();
  }
}
