package org.gradientsync.cuda;

import java.util.List;
import jcuda.driver.CUgraph;
import org.gradientsync.Event;
import org.gradientsync.Stream;
import org.gradientsync.cuda.internal.driver.CudaApi;
import org.gradientsync.cuda.internal.driver.GpuStream;
import org.gradientsync.spi.Resources;

/**
 * A stream of work on one GPU. What is enqueued on a stream runs in order; the host does not wait
 * for it.
 *
 * <p>Safe for use by several threads; the order of their calls is then theirs to keep.
 */
public final class CudaStream implements Stream {
  private final CudaDevice device;
  private final GpuStream stream;

  CudaStream(CudaDevice device, GpuStream stream) {
    this.device = device;
    this.stream = stream;
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
  @Override
  public void await() {
    stream.await();
  }

  /**
   * Lets what is enqueued here later wait for an event.
   *
   * @param event recorded on any stream, of this GPU or another
   */
  public void waitFor(CudaEvent event) {
    stream.waitFor(event.driver());
  }

  @Override
  public void waitFor(Event event) {
    waitFor((CudaEvent) event);
  }

  /**
   * Begins a graph: what is enqueued here until {@link #endCapture()} is noted and not run. The
   * calling thread may enqueue on this stream, and on streams that wait for it, but neither wait
   * for them nor allocate; that makes the capture fail. Other threads may do what they like, but
   * not on these streams.
   *
   * @throws IllegalStateException if this stream is being captured already
   * @throws CudaException if the driver does not capture this stream
   */
  public void beginCapture() {
    if (isCapturing()) {
      throw new IllegalStateException("stream is being captured already: device=" + device);
    }
    stream.beginCapture();
  }

  /**
   * Ends the graph that {@link #beginCapture()} began, on the same thread. From now on the stream
   * runs what is enqueued, even if the capture has failed.
   *
   * @return the graph, which the caller closes
   * @throws IllegalStateException if this stream is not being captured, or nothing was enqueued
   * @throws CudaException if something that cannot be captured was asked for in between
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
    } catch (CudaException e) {
      throw new CudaException(
          e.getMessage()
              + ", device="
              + device
              + "; between beginCapture and endCapture enqueue only, and end it on the same thread",
          e.code());
    }
  }

  /**
   * Whether what is enqueued here is being noted for a graph.
   *
   * @return true from {@link #beginCapture()} to {@link #endCapture()}, even if the capture has
   *     failed in between
   */
  @Override
  public boolean isCapturing() {
    return stream.isCapturing();
  }

  GpuStream driver() {
    return stream;
  }

  /**
   * Destroys the stream, if it was made here; what is enqueued still runs. A second call does
   * nothing.
   */
  @Override
  public void close() {
    stream.close();
  }
}
