package org.gradientsync.cuda;

import jcuda.driver.CUgraph;
import jcuda.driver.CUgraphExec;
import org.gradientsync.spi.Resources;

/**
 * Work that was noted on a stream, from {@link CudaStream#beginCapture()} to {@link
 * CudaStream#endCapture()}, to be enqueued any number of times by one call each. It works on the
 * memory that it was captured with, so that must not be freed before the last launch is done.
 *
 * <p>Launches of one graph run one after the other, on whichever streams they were enqueued.
 */
public final class CudaGraph implements AutoCloseable {
  private final CudaDevice device;
  private final CUgraphExec graph;
  private boolean closed;

  CudaGraph(CudaDevice device, CUgraphExec graph) {
    this.device = device;
    this.graph = graph;
  }

  /** Makes what was captured ready to be launched, and gives it back, also if that fails. */
  static CUgraphExec instantiate(CudaApi api, CUgraph captured) {
    CUgraphExec ready;
    try {
      ready = api.instantiate(captured);
    } catch (RuntimeException | Error e) {
      Resources.closeAllAfter(e, () -> api.destroyGraph(captured));
      throw e;
    }
    try {
      api.destroyGraph(captured);
    } catch (RuntimeException | Error e) {
      Resources.closeAllAfter(e, () -> api.destroyGraph(ready));
      throw e;
    }
    return ready;
  }

  /**
   * Enqueues the whole graph on a stream: it runs after what was enqueued there before, and before
   * what is enqueued there later.
   *
   * @param stream a stream of this graph's GPU; not necessarily the one that was captured
   * @throws IllegalArgumentException if the stream belongs to another GPU
   * @throws IllegalStateException if this graph or the stream is closed
   */
  public void launch(CudaStream stream) {
    device.requireOwn(stream);
    if (closed) {
      throw new IllegalStateException("graph is closed: device=" + device);
    }
    device.makeCurrent();
    device.api().launch(graph, stream.handle());
  }

  /** Destroys the graph; what is enqueued of it still runs. A second call does nothing. */
  @Override
  public void close() {
    if (!closed) {
      closed = true;
      Resources.closeAll(device::makeCurrent, () -> device.api().destroyGraph(graph));
    }
  }
}
