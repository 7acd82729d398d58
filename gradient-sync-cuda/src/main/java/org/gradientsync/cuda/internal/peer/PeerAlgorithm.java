package org.gradientsync.cuda.internal.peer;

import java.util.Locale;
import org.gradientsync.DataType;
import org.gradientsync.ReduceOp;

/** The algorithms of {@code peer.cuh} that move data between GPUs. */
public enum PeerAlgorithm {
  /** Each rank sends everything to every rank, in lines that carry their own flags. */
  ONE_SHOT(256),
  /** Each rank sends shards to their owners, and results to every rank, in such lines. */
  TWO_SHOT(256),
  /** As {@link #TWO_SHOT}, for buffers of whole, aligned vectors. */
  TWO_SHOT_UNROLLED(256),
  /**
   * Not a CUDA stream: each rank sends shards to their owners in a stream of chunks, with one flag
   * for each chunk, at the links' full speed, and results go straight into all ranks' buffers.
   */
  STREAM(512),
  /** As {@link #STREAM}, with fewer blocks that have more in flight, to overlap with other work. */
  STREAM_FEW_CTAS(512),
  /**
   * As {@link #STREAM_FEW_CTAS}, for elements that travel in another type. Results also go through
   * the staging.
   */
  STAGED(512),
  /** One rank sends its elements to every rank, in lines, or parts that the others forward. */
  BROADCAST(256);

  final int threads;

  PeerAlgorithm(int threads) {
    this.threads = threads;
  }

  /**
   * Whether there is a kernel for this combination. {@link #TWO_SHOT} has kernels for all
   * reductions, the others only for what gradients need.
   *
   * @param checkFinite whether the kernels check for NaN and infinities; a broadcast does not
   */
  boolean takes(PeerFormat format, ReduceOp op, boolean checkFinite) {
    DataType type = format.type();
    boolean hasMore =
        op.adds() && type.isFloatingPoint() && !(checkFinite && type == DataType.FLOAT64);
    return switch (this) {
      case TWO_SHOT -> true;
      case ONE_SHOT, TWO_SHOT_UNROLLED -> hasMore;
      case STREAM, STREAM_FEW_CTAS -> hasMore && !format.isNarrowed();
      case STAGED -> hasMore && format.isNarrowed();
      case BROADCAST -> op.adds() && !checkFinite && !format.isNarrowed();
    };
  }

  /** Whether it splits large buffers into chunks. */
  boolean isChunked() {
    return this == STREAM || this == STREAM_FEW_CTAS || this == STAGED;
  }

  /**
   * The number of 16-byte vectors that each thread of a chunked algorithm has in flight, as in
   * chunks.cuh.
   */
  int batch(DataType wire) {
    return switch (this) {
      case STREAM -> 2;
      case STREAM_FEW_CTAS, STAGED -> wire.sizeInBytes() == 2 ? 4 : 8;
      default -> 0;
    };
  }

  /** The name used in kernel names and settings. */
  String text() {
    return name().toLowerCase(Locale.ROOT);
  }
}
