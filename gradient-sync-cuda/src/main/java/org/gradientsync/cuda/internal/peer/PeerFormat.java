package org.gradientsync.cuda.internal.peer;

import org.gradientsync.DataType;
import org.gradientsync.ReduceOp;

/**
 * The types in which elements are stored and travel.
 *
 * @param type the type in buffers
 * @param wire the type between GPUs: the same, or a 16-bit type for FLOAT32
 */
public record PeerFormat(DataType type, DataType wire) {
  /** The format of elements that travel as they are. */
  static PeerFormat plain(DataType type) {
    return new PeerFormat(type, type);
  }

  /**
   * The format of a reduction.
   *
   * @param requested the sync's wire type, or null
   */
  static PeerFormat of(DataType type, ReduceOp op, DataType requested) {
    return requested != null && type == DataType.FLOAT32 && op.adds()
        ? new PeerFormat(type, requested)
        : plain(type);
  }

  boolean isNarrowed() {
    return type != wire;
  }

  /** The name used in kernel names. */
  String text() {
    return isNarrowed() ? type + "_" + wire : type.toString();
  }
}
