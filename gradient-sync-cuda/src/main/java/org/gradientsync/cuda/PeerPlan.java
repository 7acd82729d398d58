package org.gradientsync.cuda;

import jcuda.driver.CUgraph;
import jcuda.driver.CUgraphExec;
import jcuda.driver.CUstream;
import org.gradientsync.spi.Resources;

/**
 * One buffer and operation, ready to be launched: one kernel, or several one after the other for a
 * large buffer that the others cannot map. Held as a CUDA graph, which is enqueued faster than a
 * kernel is launched.
 */
final class PeerPlan implements AutoCloseable {
  private final CudaDevice device;
  private final PeerLaunch[] launches;
  private final boolean follows;
  private final boolean handsOver;
  private final CUgraphExec graph;

  /**
   * Captures the launches.
   *
   * @param capture a stream of the library's own, on which nothing runs
   * @param follows whether the first launch may come before the end of a call that hands over
   * @param handsOver whether the first launch hands over to the next call, and is the only one
   */
  PeerPlan(
      CudaDevice device,
      CudaStream capture,
      boolean follows,
      boolean handsOver,
      PeerLaunch... launches) {
    this.device = device;
    this.launches = launches;
    this.follows = follows;
    this.handsOver = handsOver;
    CudaApi api = device.api();
    device.makeCurrent();
    api.beginCapture(capture.handle());
    try {
      launches[0].handsOver(handsOver);
      enqueueEach(capture.handle());
    } catch (RuntimeException | Error e) {
      Resources.closeAllAfter(e, () -> api.destroyGraph(api.endCapture(capture.handle())));
      throw e;
    }
    CUgraph captured = api.endCapture(capture.handle());
    graph = CudaGraph.instantiate(api, captured);
    launches[0].handsOver(false); // in graphs of others, whose launches nobody may count
  }

  /** Whether it may be enqueued before the end of a call that hands over. */
  boolean follows() {
    return follows;
  }

  /** Whether {@link #enqueue} counts as a handover, see {@link PeerHandover}. */
  boolean handsOver() {
    return handsOver;
  }

  /** Enqueues it; the device's context is current. Allocates nothing. */
  void enqueue(CUstream stream) {
    device.api().launch(graph, stream);
  }

  /** Enqueues it on a stream that is being captured, where graphs cannot be launched. */
  void enqueueEach(CUstream stream) {
    for (PeerLaunch launch : launches) {
      launch.enqueue(stream);
    }
  }

  @Override
  public void close() {
    Resources.closeAll(device::makeCurrent, () -> device.api().destroyGraph(graph));
  }
}
