package org.gradientsync.cuda;

import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import jcuda.driver.CUgraphExec;
import jcuda.driver.CUstream;
import org.gradientsync.DeviceException;
import org.gradientsync.GradientSyncException;
import org.gradientsync.cuda.internal.driver.GpuStream;
import org.gradientsync.spi.Resources;

/**
 * The work captured on a stream between {@link CudaStream#beginCapture()} and {@link
 * CudaStream#endCapture()}. One call enqueues all of it, any number of times. The graph uses the
 * memory addresses that it was captured with, so do not free that memory before the last launch is
 * done.
 *
 * <p>Launches of one graph run one after the other, whichever streams they are on.
 */
public final class CudaGraph implements AutoCloseable {
  private final CudaDevice device;
  private final CUgraphExec graph;
  private final GpuStream.Replay[] replays;
  private final Object[] locks; // one per sync, in locking order
  private boolean closed;

  CudaGraph(CudaDevice device, CUgraphExec graph, List<GpuStream.Replay> replays) {
    this.device = device;
    this.graph = graph;
    this.replays =
        replays.stream()
            .sorted(Comparator.comparingLong(GpuStream.Replay::order))
            .toArray(GpuStream.Replay[]::new);
    locks = Arrays.stream(this.replays).map(GpuStream.Replay::lock).distinct().toArray();
  }

  /**
   * Enqueues the whole graph on a stream, in order with the other work on that stream.
   *
   * <p>Averages of buffers on the stream that began the capture count as calls of their sync. They
   * run after the sync's earlier calls, whichever streams those are on, and throw the same
   * exceptions. Averages on other streams that joined the capture do not count as calls: the caller
   * must order them with the sync's other calls.
   *
   * @param stream a stream of this graph's GPU, not necessarily the captured one
   * @throws IllegalArgumentException if the stream belongs to another GPU
   * @throws IllegalStateException if this graph, the stream, a buffer that the graph averages, or
   *     that buffer's sync is closed
   * @throws GradientSyncException if the sync of one of the graph's averages is broken
   */
  public void launch(CudaStream stream) {
    device.requireOwn(stream);
    if (closed) {
      throw new IllegalStateException("graph is closed: device=" + device);
    }
    launch(stream, 0);
  }

  /** Takes the locks of all syncs, one inside the other, so that no other call gets in between. */
  private void launch(CudaStream stream, int locked) {
    if (locked < locks.length) {
      synchronized (locks[locked]) {
        launch(stream, locked + 1);
      }
      return;
    }
    CUstream handle = stream.driver().handle();
    for (GpuStream.Replay replay : replays) {
      replay.check();
    }
    try {
      for (GpuStream.Replay replay : replays) {
        replay.replays(stream.driver());
      }
      device.makeCurrent();
      device.gpu().api().launch(graph, handle);
      for (GpuStream.Replay replay : replays) {
        replay.launched();
      }
    } catch (DeviceException e) {
      RuntimeException failure = e;
      for (GpuStream.Replay replay : replays) {
        RuntimeException reported = replay.failed(e);
        failure = failure == e ? reported : failure;
      }
      throw failure;
    }
  }

  /** Destroys the graph. Launches enqueued earlier still run. A second call does nothing. */
  @Override
  public void close() {
    if (!closed) {
      closed = true;
      Resources.closeAll(device::makeCurrent, () -> device.gpu().api().destroyGraph(graph));
    }
  }
}
