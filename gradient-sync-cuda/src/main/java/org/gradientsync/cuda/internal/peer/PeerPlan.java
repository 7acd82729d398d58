package org.gradientsync.cuda.internal.peer;

import jcuda.driver.CUgraph;
import jcuda.driver.CUgraphExec;
import jcuda.driver.CUstream;
import org.gradientsync.cuda.internal.driver.CudaApi;
import org.gradientsync.cuda.internal.driver.Gpu;
import org.gradientsync.cuda.internal.driver.GpuStream;
import org.gradientsync.spi.Resources;

/**
 * A prepared call for one buffer and operation: one kernel, or several in sequence for a buffer
 * that is too large for one launch. It is a CUDA graph, because a graph is enqueued faster than a
 * kernel is launched.
 */
final class PeerPlan implements AutoCloseable {
  private final Gpu gpu;
  private final PeerLaunch[] launches;
  private final CUgraphExec graph;

  /**
   * Captures the launches.
   *
   * @param capture an idle stream that only the library uses
   */
  PeerPlan(Gpu gpu, GpuStream capture, PeerLaunch... launches) {
    this.gpu = gpu;
    this.launches = launches;
    CudaApi api = gpu.api();
    gpu.makeCurrent();
    api.beginCapture(capture.handle());
    try {
      enqueueEach(capture.handle());
    } catch (RuntimeException | Error e) {
      Resources.closeAllAfter(e, () -> api.destroyGraph(api.endCapture(capture.handle())));
      throw e;
    }
    CUgraph captured = api.endCapture(capture.handle());
    graph = gpu.instantiate(captured);
  }

  /** Enqueues the graph. The device's context must be current. Allocates nothing. */
  void enqueue(CUstream stream) {
    gpu.api().launch(graph, stream);
  }

  /** Enqueues the kernels on a stream that is being captured, where graphs cannot be launched. */
  void enqueueEach(CUstream stream) {
    for (PeerLaunch launch : launches) {
      launch.enqueue(stream);
    }
  }

  @Override
  public void close() {
    Resources.closeAll(gpu::makeCurrent, () -> gpu.api().destroyGraph(graph));
  }
}
