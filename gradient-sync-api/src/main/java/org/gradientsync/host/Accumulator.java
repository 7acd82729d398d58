package org.gradientsync.host;

import java.nio.Buffer;
import org.gradientsync.DataType;
import org.gradientsync.ReduceOp;

/**
 * Reduces one block of elements after the other through a pair of small arrays. Plain loops over
 * arrays are what the JIT compiler vectorizes, and a block stays in the first-level cache, so the
 * copies in and out of it cost little.
 */
abstract class Accumulator {
  /** Elements in a block: two arrays of the widest type take 32 KiB. */
  static final int BLOCK = 2048;

  /** The accumulator for a type. */
  static Accumulator of(DataType type) {
    return switch (type) {
      case FLOAT32 -> new FloatAccumulator();
      case FLOAT16, BFLOAT16 -> new HalfAccumulator(type);
      case FLOAT64 -> new DoubleAccumulator();
      case INT32 -> new IntAccumulator();
      case INT64 -> new LongAccumulator();
    };
  }

  /** Where a source's next block is to be put before {@link #load} or {@link #combine}. */
  abstract Buffer incoming();

  /** Takes over the incoming block as the first rank's. */
  abstract void load(int count);

  /** Combines with the incoming block. */
  abstract void combine(ReduceOp op, int count);

  /** Finishes the block. */
  abstract Buffer finish(ReduceOp op, int ranks, int count);
}
