package org.gradientsync.internal.host;

import java.nio.Buffer;
import org.gradientsync.DataType;
import org.gradientsync.ReduceOp;

/**
 * Reduces one block of elements after the other through a pair of small arrays. Plain loops over
 * arrays are what the JIT compiler vectorizes, and a block stays in the first-level cache, so the
 * copies in and out of it cost little.
 */
abstract class Accumulator {
  /**
   * Elements in a block: two arrays of the widest type take 16 KiB, and the third, which watches
   * for NaN, 8; a small first-level cache has 32.
   */
  static final int BLOCK = 1024;

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

  /** Where the first rank's block is to be put before {@link #begin}. */
  abstract Buffer first();

  /** Where a further rank's block is to be put before {@link #combineNext} or {@link #finish}. */
  abstract Buffer incoming();

  /** Begins with the first rank's block. */
  void begin(int count) {
    // the block is in its place
  }

  /** Combines with the incoming block of a rank that is neither the first nor the last. */
  void combineNext(ReduceOp op, int count) {
    combine(op, count);
  }

  /** Combines the two arrays, element by element. */
  abstract void combine(ReduceOp op, int count);

  /** Combines with the incoming block of the last rank, and finishes the result. */
  Buffer finish(ReduceOp op, int ranks, int count) {
    combine(op, count);
    return first();
  }

  /**
   * Whether any block finished since the last such call may hold a NaN that is not the canonical
   * one.
   *
   * <p>Which NaN comes out of an operation on NaNs depends on the order of the operands, which the
   * JIT compiler is free to swap; one canonical NaN is what makes the bits repeatable. NaNs are
   * rare, so blocks are only watched for them, and gone over again where there may be some.
   */
  boolean takeMaybeNaN() {
    return false;
  }

  /** The incoming block with every NaN made canonical. */
  Buffer canonicalize(int count) {
    return incoming();
  }
}
