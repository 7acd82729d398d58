package org.gradientsync.cuda.internal.peer;

import org.gradientsync.DataType;
import org.gradientsync.ReduceOp;
import org.gradientsync.spi.Resources;

/**
 * The buffers, one on each rank, that are reduced together. Has the number on which the ranks
 * agreed, the addresses of the buffers that are mapped here, and the plans made so far.
 */
final class PeerRegistration {
  final int number;
  final DataType type;
  final long count;

  /** Whether its calls leave most of the GPU to other work. */
  final boolean overlapped;

  /** The address of each rank's elements; 0 for other ranks if they are not mapped. */
  final long[] addresses;

  /** The mappings to release at the end; null if nothing was mapped. */
  final PeerMemory.Mapped[] mapped;

  /** Whether a graph of the caller contains one of its calls. */
  boolean captured;

  private final PeerPlan[] plans = new PeerPlan[ReduceOp.values().length];
  private PeerPlan broadcast;
  private int broadcastRoot = -1;

  PeerRegistration(
      int number,
      DataType type,
      long count,
      boolean overlapped,
      long[] addresses,
      PeerMemory.Mapped[] mapped) {
    this.number = number;
    this.type = type;
    this.count = count;
    this.overlapped = overlapped;
    this.addresses = addresses;
    this.mapped = mapped;
  }

  PeerPlan plan(ReduceOp op) {
    return plans[op.ordinal()];
  }

  void keep(ReduceOp op, PeerPlan plan) {
    plans[op.ordinal()] = plan;
  }

  /** The plan of the last broadcast, if it was from this root. */
  PeerPlan broadcast(int root) {
    return root == broadcastRoot ? broadcast : null;
  }

  void keepBroadcast(int root, PeerPlan plan) {
    PeerPlan before = broadcast;
    broadcast = plan;
    broadcastRoot = root;
    Resources.closeAll(before);
  }

  void closePlans() {
    Resources.closeAll(() -> Resources.closeAll(plans), broadcast);
  }
}
