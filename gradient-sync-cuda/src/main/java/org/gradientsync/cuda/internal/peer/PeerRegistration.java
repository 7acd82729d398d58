package org.gradientsync.cuda.internal.peer;

import org.gradientsync.DataType;
import org.gradientsync.ReduceOp;
import org.gradientsync.cuda.CudaBuffer;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.CollectiveCall.Kind;
import org.gradientsync.spi.Resources;

/**
 * What the ranks have registered together: a buffer of each rank for its all-reduces and
 * broadcasts; several buffers of each rank, its {@linkplain PeerParts parts}, that are reduced as
 * one; or the input and output of another collective. Has the number on which the ranks agreed,
 * what is mapped here, and the plans made so far.
 */
final class PeerRegistration implements AutoCloseable {
  final int number;
  final DataType type;

  /** The number of elements of a block. */
  final long count;

  /** Whether its calls leave most of the GPU to other work. */
  final boolean sparing;

  /**
   * The address of each rank's elements here; 0 for other ranks if they are not mapped, and for all
   * if there are {@link #parts}, which have them.
   */
  final long[] addresses;

  /** The mappings to release at the end; null if nothing was mapped. */
  final PeerMemory.Mapped[] mapped;

  /** What other ranks write in place of an output that they cannot map; or null. */
  final CudaBuffer copy;

  /** The buffers that are reduced as one; or null. */
  final PeerParts parts;

  /** Whether a graph of the caller contains one of its calls. */
  boolean captured;

  private final PeerPlan[] reductions = new PeerPlan[ReduceOp.values().length];
  private PeerPlan other; // a broadcast, or the collective
  private int broadcastRoot = -1;
  private Runnable onClose = () -> {};

  PeerRegistration(
      int number,
      DataType type,
      long count,
      boolean sparing,
      long[] addresses,
      PeerMemory.Mapped[] mapped,
      CudaBuffer copy,
      PeerParts parts) {
    this.number = number;
    this.type = type;
    this.count = count;
    this.sparing = sparing;
    this.addresses = addresses;
    this.mapped = mapped;
    this.copy = copy;
    this.parts = parts;
  }

  /** The plan of a call, or null. Of broadcasts, only the last one's is kept. */
  PeerPlan plan(CollectiveCall call) {
    return switch (call.kind()) {
      case ALL_REDUCE -> reductions[call.op().ordinal()];
      case BROADCAST -> call.root() == broadcastRoot ? other : null;
      default -> other;
    };
  }

  void keep(CollectiveCall call, PeerPlan plan) {
    if (call.kind() == Kind.ALL_REDUCE) {
      reductions[call.op().ordinal()] = plan;
      return;
    }
    PeerPlan before = other;
    other = plan;
    broadcastRoot = call.root();
    Resources.closeAll(before);
  }

  void closePlans() {
    Resources.closeAll(() -> Resources.closeAll(reductions), other);
  }

  /** Sets what {@link #close} runs. */
  void onClose(Runnable end) {
    onClose = end;
  }

  @Override
  public void close() {
    onClose.run();
  }
}
