package org.gradientsync.cuda.internal.peer;

import jcuda.driver.CUgraph;
import jcuda.driver.CUgraphExec;
import jcuda.driver.CUstream;
import org.gradientsync.cuda.internal.driver.CudaApi;
import org.gradientsync.cuda.internal.driver.Gpu;
import org.gradientsync.cuda.internal.driver.GpuStream;
import org.gradientsync.spi.Resources;

/**
 * One buffer and operation, ready to be launched: one kernel, or several one after the other for a
 * large buffer that the others cannot map. Held as a CUDA graph, which is enqueued faster than a
 * kernel is launched.
 */
final class PeerPlan implements AutoCloseable {
  private final Gpu gpu;
  private final PeerLaunch[] launches;
  private final CUgraphExec graph;

  /**
   * Captures the launches.
   *
   * @param capture a stream of the library's own, on which nothing runs
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

  /** Enqueues it; the device's context is current. Allocates nothing. */
  void enqueue(CUstream stream) {
    gpu.api().launch(graph, stream);
  }

  /** Enqueues it on a stream that is being captured, where graphs cannot be launched. */
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
