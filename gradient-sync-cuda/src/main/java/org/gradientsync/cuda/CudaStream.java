package org.gradientsync.cuda;

import java.util.List;
import jcuda.driver.CUgraph;
import org.gradientsync.DeviceException;
import org.gradientsync.Event;
import org.gradientsync.Stream;
import org.gradientsync.cuda.internal.driver.CudaApi;
import org.gradientsync.cuda.internal.driver.GpuStream;
import org.gradientsync.spi.Resources;

/**
 * A stream of one GPU. The GPU runs the work on a stream in the order in which it was enqueued, and
 * the host does not wait for it.
 *
 * <p>Several threads may use a stream, but they must order their calls themselves.
 */
public final class CudaStream implements Stream {
  private final CudaDevice device;
  private final GpuStream stream;

  CudaStream(CudaDevice device, GpuStream stream) {
    this.device = device;
    this.stream = stream;
  }

  /** {@return the GPU that this stream belongs to} */
  public CudaDevice device() {
    return device;
  }

  /** Blocks the host until all work enqueued so far is done. */
  @Override
  public void await() {
    stream.await();
  }

  /**
   * Makes work that is enqueued on this stream later wait for an event. Does not block the host.
   *
   * @param event an event of this GPU or another
   */
  public void waitFor(CudaEvent event) {
    stream.waitFor(event.driver());
  }

  @Override
  public void waitFor(Event event) {
    waitFor((CudaEvent) event);
  }

  /**
   * Begins to capture a graph. Until {@link #endCapture()}, work enqueued on this stream is
   * recorded and does not run. The calling thread may enqueue work on this stream and on streams
   * that wait for it. If it waits for these streams or allocates memory, the capture fails. Other
   * threads must not use these streams, but are not restricted otherwise.
   *
   * @throws IllegalStateException if this stream is already being captured
   * @throws DeviceException if the driver cannot capture this stream
   */
  public void beginCapture() {
    if (isCapturing()) {
      throw new IllegalStateException("stream is being captured already: device=" + device);
    }
    stream.beginCapture();
  }

  /**
   * Ends the capture that {@link #beginCapture()} began on the same thread. Work enqueued on this
   * stream from now on runs again, even if the capture has failed.
   *
   * @return a graph that the caller closes
   * @throws IllegalStateException if this stream is not being captured, or nothing was enqueued
   * @throws DeviceException if the capture has failed, because of a call that CUDA cannot capture
   */
  public CudaGraph endCapture() {
    if (!isCapturing()) {
      throw new IllegalStateException("stream is not being captured: device=" + device);
    }
    CudaApi api = device.gpu().api();
    List<GpuStream.Replay> replays = stream.takeReplays();
    CUgraph graph = captured();
    try {
      if (api.nodes(graph) == 0) {
        throw new IllegalStateException(
            "nothing was captured: device="
                + device
                + "; enqueue on this stream between beginCapture and endCapture");
      }
    } catch (RuntimeException | Error e) {
      Resources.closeAllAfter(e, () -> api.destroyGraph(graph));
      throw e;
    }
    return new CudaGraph(device, device.gpu().instantiate(graph), replays);
  }

  private CUgraph captured() {
    try {
      return device.gpu().api().endCapture(stream.handle());
    } catch (DeviceException e) {
      throw new DeviceException(
          e.getMessage()
              + ", device="
              + device
              + "; between beginCapture and endCapture enqueue only, and end it on the same thread",
          e.code());
    }
  }

  /**
   * {@return whether this stream is being captured into a graph: from {@link #beginCapture()} to
   * {@link #endCapture()}, even if the capture has failed}
   */
  @Override
  public boolean isCapturing() {
    return stream.isCapturing();
  }

  GpuStream driver() {
    return stream;
  }

  /**
   * Destroys the stream, unless it wraps another library's. Work enqueued earlier still runs. A
   * second call does nothing.
   */
  @Override
  public void close() {
    stream.close();
  }
}
