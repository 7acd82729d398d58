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

  /** The operation number of a collective with an input and an output. */
  private static final int COLLECTIVE = 5;

  /** The operation number of a message. Only reports contain it. */
  private static final int MESSAGE = 6;

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

  /** The registration is of one collective with its operation and root. */
  static int ofCollective(int registration) {
    return registration << OP_BITS | COLLECTIVE;
  }

  static int ofMessage(int peer, boolean sends) {
    return (peer << 1 | (sends ? 1 : 0)) << OP_BITS | MESSAGE;
  }

  static boolean isCollective(int tag) {
    return code(tag) == COLLECTIVE;
  }

  static boolean isMessage(int tag) {
    return code(tag) == MESSAGE;
  }

  /** The other rank of a message. */
  static int peer(int tag) {
    return tag >>> OP_BITS + 1;
  }

  /** Whether this rank sends the message. */
  static boolean sends(int tag) {
    return (tag >>> OP_BITS & 1) == 1;
  }

  private static int code(int tag) {
    return tag & (1 << OP_BITS) - 1;
  }

  static int registration(int tag) {
    return tag >>> OP_BITS;
  }

  static String operation(int tag) {
    int op = code(tag);
    return op < ReduceOp.values().length ? ReduceOp.values()[op].name() : "broadcast";
  }
}
