package org.gradientsync.internal.sync;

import org.gradientsync.DeviceBuffer;
import org.gradientsync.ReduceOp;
import org.gradientsync.spi.Collective;

/**
 * One call inside of {@link org.gradientsync.GradientSync#grouped}.
 *
 * @param kind what it does
 * @param collective for {@link Kind#COLLECTIVE}; otherwise null
 * @param in the input, or the only buffer; null if there is none
 * @param out the output; null if there is none
 * @param op the reduction, or null
 * @param rank the root, or the other rank of a message
 */
record RecordedCall(
    Kind kind, Collective collective, DeviceBuffer in, DeviceBuffer out, ReduceOp op, int rank) {
  enum Kind {
    ALL_REDUCE,
    BROADCAST,
    COLLECTIVE,
    SEND,
    RECEIVE
  }

  boolean isMessage() {
    return kind == Kind.SEND || kind == Kind.RECEIVE;
  }

  /** Whether both are the same call on the same buffers. */
  boolean isSame(RecordedCall other) {
    return kind == other.kind
        && collective == other.collective
        && in == other.in
        && out == other.out
        && op == other.op
        && rank == other.rank;
  }
}
