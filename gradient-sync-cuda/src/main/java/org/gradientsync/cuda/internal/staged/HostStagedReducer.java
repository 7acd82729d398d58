package org.gradientsync.cuda.internal.staged;

import org.gradientsync.DeviceBuffer;
import org.gradientsync.RankLostException;
import org.gradientsync.ReduceOp;
import org.gradientsync.cuda.CudaBuffer;
import org.gradientsync.cuda.internal.driver.Gpu;
import org.gradientsync.internal.host.HostDevice;
import org.gradientsync.internal.matching.NodeMemory;
import org.gradientsync.spi.RankGroup;
import org.gradientsync.spi.Reducer;
import org.gradientsync.spi.Resources;

/**
 * Reduces GPU memory by way of page-locked host memory. Needs nothing of the GPUs but that each can
 * copy to its host, and nothing of MPI.
 *
 * <p>Small buffers are added up by the CPU, where the fewest steps count ({@link StagedOnHost});
 * larger ones by the GPUs, which read each other's staging memory and leave the CPU nothing but to
 * tell them when ({@link StagedOnGpu}). Ranks on several nodes cannot share memory and always take
 * the first way.
 */
final class HostStagedReducer implements Reducer {
  static final String NAME = "host-staged";

  /** From here on the GPUs add. */
  private static final long GPU_BYTES = 256 << 10;

  private final RankGroup group;
  private final StagedOnHost onHost;
  private final StagedOnGpu onGpu;

  /**
   * A reducer.
   *
   * @param inner reduces buffers of the host device over the same group
   * @param node memory that all ranks share, or null if they cannot
   */
  HostStagedReducer(RankGroup group, Gpu gpu, HostDevice host, Reducer inner, NodeMemory node) {
    this.group = group;
    onHost = new StagedOnHost(group, gpu, host, inner);
    try {
      onGpu = node == null ? null : new StagedOnGpu(group, gpu, node);
    } catch (RuntimeException | Error e) {
      Resources.closeAllAfter(e, onHost);
      throw e;
    }
  }

  @Override
  public String name() {
    return NAME;
  }

  @Override
  public void allReduce(DeviceBuffer buffer, ReduceOp op) {
    synchronized (group) {
      group.meetForAllReduce(buffer, op);
      if (group.size() == 1 || buffer.count() == 0) {
        group.finished();
        return;
      }
      try {
        if (onGpu != null && buffer.sizeInBytes() >= GPU_BYTES) {
          onGpu.reduce((CudaBuffer) buffer, op);
        } else {
          onHost.reduce((CudaBuffer) buffer, op);
        }
      } catch (RuntimeException | Error e) {
        throw broken(e);
      }
      group.finished();
    }
  }

  @Override
  public void broadcast(DeviceBuffer buffer, int root) {
    synchronized (group) {
      group.meetForBroadcast(buffer, root);
      try {
        if (group.size() > 1 && buffer.count() > 0) {
          onHost.broadcast((CudaBuffer) buffer, root);
        }
      } catch (RuntimeException | Error e) {
        throw broken(e);
      }
      group.finished();
    }
  }

  /** What fails after the ranks have met leaves the others waiting: the sync is broken then. */
  private RankLostException broken(Throwable e) {
    return e instanceof RankLostException lost
        ? lost
        : group.lost("the call failed in the middle: " + e, e);
  }

  @Override
  public void close() {
    synchronized (group) {
      Resources.closeAll(onGpu, onHost);
    }
  }
}
