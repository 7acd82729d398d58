package org.gradientsync.core.host;

import java.nio.Buffer;
import org.gradientsync.DataType;
import org.gradientsync.ReduceOp;

/**
 * Reduces blocks of elements through a pair of small arrays. The JIT compiler vectorizes plain
 * loops over arrays, and a block stays in the first-level cache, so copying it in and out costs
 * little.
 */
abstract class Accumulator {
  /**
   * Elements in a block. Two arrays of the widest type take 16 KiB, and the third, which detects
   * NaN, takes 8; small first-level caches have 32.
   */
  static final int BLOCK = 1024;

  static Accumulator of(DataType type) {
    return switch (type) {
      case FLOAT32 -> new FloatAccumulator();
      case FLOAT16, BFLOAT16 -> new HalfAccumulator(type);
      case FLOAT64 -> new DoubleAccumulator();
      case INT32 -> new IntAccumulator();
      case INT64 -> new LongAccumulator();
    };
  }

  /** The buffer for the first rank's block, to be filled before {@link #begin}. */
  abstract Buffer first();

  /**
   * The buffer for another rank's block, to be filled before {@link #combineNext} or {@link
   * #finish}.
   */
  abstract Buffer incoming();

  /** The buffer of the reduction so far, in the accumulator's type. */
  Buffer running() {
    return first();
  }

  /** Begins with the first rank's block. */
  void begin(int count) {
    // the block is in place
  }

  /** Combines the incoming block of a rank that is neither first nor last. */
  void combineNext(ReduceOp op, int count) {
    combine(op, count);
  }

  /** Combines the two arrays element by element. */
  abstract void combine(ReduceOp op, int count);

  /** Combines the incoming block of the last rank and returns the result. */
  Buffer finish(ReduceOp op, int ranks, int count) {
    combine(op, count);
    return first();
  }

  /** Turns a complete {@link #running} reduction into the result. */
  Buffer round(ReduceOp op, int ranks, int count) {
    return first();
  }

  /**
   * Whether a block finished since the last such call may hold a NaN that is not canonical.
   *
   * <p>The NaN that results from an operation on two NaNs depends on the order of the operands,
   * which the JIT compiler may swap. A canonical NaN makes the bits repeatable. NaNs are rare, so
   * blocks are only checked for them, and processed again where there may be some.
   */
  boolean takeMaybeNaN() {
    return false;
  }

  /** The incoming block with canonical NaNs. */
  Buffer canonicalize(int count) {
    return incoming();
  }
}
