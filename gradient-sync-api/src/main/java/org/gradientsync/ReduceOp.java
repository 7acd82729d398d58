package org.gradientsync;

/**
 * What an all-reduce makes of the ranks' elements.
 *
 * <p>The elements are taken in rank order, ((g0 op g1) op g2) and so on. Floating-point steps are
 * rounded one by one in the accumulator type (float32 for {@link DataType#FLOAT16}, {@link
 * DataType#BFLOAT16} and {@link DataType#FLOAT32}; float64 for {@link DataType#FLOAT64}), with no
 * fused multiply-add and no flushing of denormals, and the result is rounded once to the buffer's
 * type, to nearest even. A result that is not a number is the canonical quiet NaN of its type. So
 * all ranks get the same bits, whichever reducer ran.
 *
 * <p>With one rank there is nothing to reduce, and no bit is changed.
 */
public enum ReduceOp {
  /** The sum; integers wrap around. */
  SUM,
  /** The sum divided by the number of ranks, in the accumulator type. Refused for integers. */
  AVERAGE,
  /** The least, as {@link Math#min(float, float)}: NaN wins, and -0 is less than +0. */
  MIN,
  /** The greatest, as {@link Math#max(float, float)}: NaN wins, and +0 is greater than -0. */
  MAX,
  /** The product; integers wrap around. */
  PROD;

  /**
   * Whether it adds: what alone may travel as another type.
   *
   * @return true for {@link #SUM} and {@link #AVERAGE}
   */
  public boolean adds() {
    return this == SUM || this == AVERAGE;
  }

  /**
   * Whether it has a meaning for a type.
   *
   * @param type the element type it would be applied to
   * @return false for {@link #AVERAGE} of an integer type, otherwise true
   */
  public boolean isDefinedFor(DataType type) {
    return this != AVERAGE || type.isFloatingPoint();
  }

  /**
   * Refuses an operation that has no meaning for a type.
   *
   * @param type the element type it would be applied to
   * @throws IllegalArgumentException for {@link #AVERAGE} of an integer type
   */
  public void requireDefinedFor(DataType type) {
    if (!isDefinedFor(type)) {
      throw new IllegalArgumentException(
          "average of integers is not defined: type="
              + type
              + "; use SUM and divide as your program needs, or a floating-point type");
    }
  }
}
