package org.gradientsync.cuda.internal.peer;

import java.util.Locale;
import org.gradientsync.DataType;
import org.gradientsync.ReduceOp;

/** The algorithms of {@code peer.cuh}, by which data goes from GPU to GPU. */
public enum PeerAlgorithm {
  /** Everything to everybody, in lines that carry their own flags. */
  ONE_SHOT(256),
  /** Shards to their owners, results to everybody, in such lines. */
  TWO_SHOT(256),
  /** The same for buffers of whole vectors. */
  TWO_SHOT_UNROLLED(256),
  /** The same in chunks and at the links' full speed; results go straight into the buffers. */
  STREAM(512),
  /** As stream, with fewer blocks that have more in flight, to overlap with other work. */
  STREAM_FEW_CTAS(512),
  /**
   * As stream_few_ctas, for elements that travel in another type; results go through staging, too.
   */
  STAGED(512),
  /** One rank's elements to everybody, in lines. */
  BROADCAST(256);

  final int threads;

  PeerAlgorithm(int threads) {
    this.threads = threads;
  }

  /**
   * Whether there are kernels for it. {@link #TWO_SHOT} takes everything, the others what gradients
   * need.
   *
   * @param checkFinite whether the kernels look for what is not finite; a broadcast does not
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

  /** Whether large buffers go in chunks. */
  boolean isChunked() {
    return this == STREAM || this == STREAM_FEW_CTAS || this == STAGED;
  }

  /**
   * How many vectors of 16 bytes each thread of a chunked algorithm has in flight, as in
   * chunks.cuh.
   */
  int batch(DataType wire) {
    return switch (this) {
      case STREAM -> 2;
      case STREAM_FEW_CTAS, STAGED -> wire.sizeInBytes() == 2 ? 4 : 8;
      default -> 0;
    };
  }

  /** As it is written in kernels' names and in settings. */
  String text() {
    return name().toLowerCase(Locale.ROOT);
  }
}
