package org.gradientsync.cuda.internal.staged;

import java.util.List;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.MismatchedCallException;
import org.gradientsync.RankLostException;
import org.gradientsync.ReduceOp;
import org.gradientsync.cuda.CudaBuffer;
import org.gradientsync.cuda.internal.driver.Gpu;
import org.gradientsync.internal.collectives.MessageRounds;
import org.gradientsync.internal.host.HostDevice;
import org.gradientsync.internal.matching.NodeMemory;
import org.gradientsync.spi.Collective;
import org.gradientsync.spi.PeerMessage;
import org.gradientsync.spi.RankGroup;
import org.gradientsync.spi.Reducer;
import org.gradientsync.spi.Resources;

/**
 * Reduces GPU memory through page-locked host memory. Requires only that each GPU can copy to its
 * host; MPI need not support GPUs.
 *
 * <p>The CPU adds up small buffers, for which few steps matter most ({@link StagedOnHost}). The
 * GPUs add up larger ones: they read each other's staging memory, and the CPU only tells them when
 * ({@link StagedOnGpu}). Ranks on several nodes cannot share memory and always use the CPU.
 */
final class HostStagedReducer implements Reducer {
  static final String NAME = "host-staged";

  /** From this size on, the GPUs add. */
  private static final long GPU_BYTES = 256 << 10;

  private final RankGroup group;
  private final StagedOnHost onHost;
  private final StagedOnGpu onGpu;
  private final StagedTransfers transfers;

  /**
   * @param inner reduces buffers of the host device over the same group
   * @param node memory that all ranks share, or null if they cannot share any
   */
  HostStagedReducer(RankGroup group, Gpu gpu, HostDevice host, Reducer inner, NodeMemory node) {
    this.group = group;
    onHost = new StagedOnHost(group, gpu, host, inner);
    transfers = new StagedTransfers(group, gpu, host, inner);
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

  @Override
  public void register(DeviceBuffer buffer) {
    synchronized (group) {
      group.meetForRegistration(buffer); // the first call prepares so little that it may do it
      group.finished();
    }
  }

  @Override
  public void run(Collective collective, DeviceBuffer in, DeviceBuffer out, ReduceOp op, int root) {
    synchronized (group) {
      group.meetFor(collective, in, out, op, root);
      try {
        if (collective.blockCount(in, out, group.size()) > 0) {
          transfers.run(collective, (CudaBuffer) in, (CudaBuffer) out, op, root);
        }
      } catch (RuntimeException | Error e) {
        throw broken(e);
      }
      group.finished();
    }
  }

  @Override
  public void send(DeviceBuffer buffer, int peer) {
    message(buffer, peer, true);
  }

  @Override
  public void receive(DeviceBuffer buffer, int peer) {
    message(buffer, peer, false);
  }

  @Override
  public void exchange(List<PeerMessage> messages) {
    synchronized (group) {
      MismatchedCallException failure = null;
      for (List<PeerMessage> round : MessageRounds.of(messages)) {
        MismatchedCallException mismatch = group.meetForMessages(round);
        failure = failure == null ? mismatch : failure;
        try {
          transfers.exchange(round);
        } catch (RuntimeException | Error e) {
          throw broken(e);
        }
        group.finished();
      }
      if (failure != null) {
        throw failure;
      }
    }
  }

  private void message(DeviceBuffer buffer, int peer, boolean sends) {
    synchronized (group) {
      group.meetForMessage(buffer, peer, sends);
      try {
        if (buffer.count() > 0 && sends) {
          transfers.send((CudaBuffer) buffer, peer);
        } else if (buffer.count() > 0) {
          transfers.receive((CudaBuffer) buffer, peer);
        }
      } catch (RuntimeException | Error e) {
        throw broken(e);
      }
      group.finished();
    }
  }

  /** Breaks the sync, because a failure after the rendezvous leaves the other ranks waiting. */
  private RankLostException broken(Throwable e) {
    return e instanceof RankLostException lost
        ? lost
        : group.lost("the call failed in the middle: " + e, e);
  }

  @Override
  public void close() {
    synchronized (group) {
      Resources.closeAll(onGpu, transfers, onHost);
    }
  }
}
