package org.gradientsync.cuda.internal.peer;

import org.gradientsync.DataType;
import org.gradientsync.ReduceOp;

/**
 * How elements lie in buffers and how they travel.
 *
 * @param type in buffers
 * @param wire on the way: the same, or a 16-bit type for FLOAT32
 */
public record PeerFormat(DataType type, DataType wire) {
  /** Elements that travel as they are. */
  static PeerFormat plain(DataType type) {
    return new PeerFormat(type, type);
  }

  /** What a reduction takes, if the sync asks for a wire type, which may be null. */
  static PeerFormat of(DataType type, ReduceOp op, DataType asked) {
    return asked != null && type == DataType.FLOAT32 && op.adds()
        ? new PeerFormat(type, asked)
        : plain(type);
  }

  boolean isNarrowed() {
    return type != wire;
  }

  /** As in the kernels' names. */
  String text() {
    return isNarrowed() ? type + "_" + wire : type.toString();
  }
}
