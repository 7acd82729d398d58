package org.gradientsync.cuda.internal.staged;

import java.nio.ByteBuffer;
import java.util.List;
import java.util.function.Consumer;
import org.gradientsync.cuda.internal.driver.Gpu;
import org.gradientsync.spi.BackendDevice;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.CollectiveCall.Kind;
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
  private final Consumer<CollectiveCall> move = this::move;
  private final Consumer<List<CollectiveCall>> exchangeRound;

  /**
   * @param inner reduces buffers of the host device over the same group
   * @param node memory that all ranks share, or null if they cannot share any
   */
  HostStagedReducer(
      RankGroup group, Gpu gpu, BackendDevice host, Reducer inner, ByteBuffer[] node) {
    this.group = group;
    onHost = new StagedOnHost(group, gpu, host, inner);
    transfers = new StagedTransfers(group, gpu, host, inner);
    exchangeRound = transfers::exchange;
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
  public void run(CollectiveCall call) {
    group.run(call, move);
  }

  /** Moves the elements of a call after its rendezvous. */
  private void move(CollectiveCall call) {
    boolean inPlace = call.kind() == Kind.ALL_REDUCE || call.kind() == Kind.BROADCAST;
    if (call.blockCount(group.size()) == 0 || inPlace && group.size() == 1) {
      return;
    }
    if (!inPlace) {
      transfers.run(call);
    } else if (onGpu != null
        && call.kind() == Kind.ALL_REDUCE
        && call.in().sizeInBytes() >= GPU_BYTES) {
      onGpu.run(call);
    } else {
      onHost.run(call);
    }
  }

  @Override
  public void prepare(CollectiveCall call) {
    synchronized (group) {
      group.meetToPrepare(call); // the first call makes the plan
    }
  }

  @Override
  public void exchange(List<CollectiveCall> messages) {
    group.exchange(messages, exchangeRound);
  }

  @Override
  public void close() {
    synchronized (group) {
      Resources.closeAll(onGpu, transfers, onHost);
    }
  }
}
