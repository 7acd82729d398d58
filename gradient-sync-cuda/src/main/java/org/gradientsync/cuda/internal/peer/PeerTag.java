package org.gradientsync.cuda.internal.peer;

import org.gradientsync.ReduceOp;

/**
 * The tag in the kernels' flags that identifies a kind of call: the number of the buffers'
 * registration, on which the ranks agreed, and the operation.
 */
final class PeerTag {
  /** As TAG_BITS in protocol.cuh. */
  static final int BITS = 24;

  static final int MASK = (1 << BITS) - 1;

  /** The tag of a rank that has given up or departed. */
  static final int GAVE_UP = MASK;

  /** The operation number of a broadcast. */
  static final int BROADCAST = 7;

  private static final int OP_BITS = 3;

  /** Registrations are numbered from 1 to this. */
  static final int MAX_REGISTRATIONS = (1 << BITS - OP_BITS) - 2;

  private PeerTag() {}

  static int of(int registration, ReduceOp op) {
    return registration << OP_BITS | op.ordinal();
  }

  static int ofBroadcast(int registration) {
    return registration << OP_BITS | BROADCAST;
  }

  static int registration(int tag) {
    return tag >>> OP_BITS;
  }

  static String operation(int tag) {
    int op = tag & (1 << OP_BITS) - 1;
    return op < ReduceOp.values().length ? ReduceOp.values()[op].name() : "broadcast";
  }
}
