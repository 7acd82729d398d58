package org.gradientsync.cuda;

import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import jcuda.driver.CUgraphExec;
import jcuda.driver.CUstream;
import org.gradientsync.GradientSyncException;
import org.gradientsync.cuda.internal.driver.GpuStream;
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
  private final GpuStream.Replay[] replays;
  private final Object[] locks; // one of each sync
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
   * Enqueues the whole graph on a stream: it runs after what was enqueued there before, and before
   * what is enqueued there later. Averages of buffers on the stream where the capture began are
   * calls of their sync like others: they come after those before, on whichever streams, and throw
   * what those throw. Averages on other streams that joined the capture are not counted, and the
   * caller keeps them and the sync's other calls in order.
   *
   * @param stream a stream of this graph's GPU; not necessarily the one that was captured
   * @throws IllegalArgumentException if the stream belongs to another GPU
   * @throws IllegalStateException if this graph, the stream, or a buffer that it averages is
   *     closed, or its sync
   * @throws GradientSyncException if a sync whose averages it has is broken
   */
  public void launch(CudaStream stream) {
    device.requireOwn(stream);
    if (closed) {
      throw new IllegalStateException("graph is closed: device=" + device);
    }
    launch(stream, 0);
  }

  /** With the locks of all syncs, one in the other, so that no other call comes in between. */
  private void launch(CudaStream stream, int first) {
    if (first < locks.length) {
      synchronized (locks[first]) {
        launch(stream, first + 1);
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
    } catch (CudaException e) {
      RuntimeException told = e;
      for (GpuStream.Replay replay : replays) {
        RuntimeException own = replay.failed(e);
        told = told == e ? own : told;
      }
      throw told;
    }
  }

  /** Destroys the graph; what is enqueued of it still runs. A second call does nothing. */
  @Override
  public void close() {
    if (!closed) {
      closed = true;
      Resources.closeAll(device::makeCurrent, () -> device.gpu().api().destroyGraph(graph));
    }
  }
}
