package org.gradientsync;

/**
 * The operation with which an all-reduce combines the ranks' elements.
 *
 * <p>The elements are combined in rank order, unless {@link SumOrder#ANY} is chosen or the reducer
 * is {@code nccl}: ((g0 op g1) op g2), and so on. Floating-point steps are rounded one by one in
 * the accumulator type (float32 for {@link DataType#FLOAT16}, {@link DataType#BFLOAT16} and {@link
 * DataType#FLOAT32}; float64 for {@link DataType#FLOAT64}), with no fused multiply-add and no
 * flushing of denormals, and the result is rounded once to the buffer's type, to nearest even. A
 * NaN result is the canonical quiet NaN of its type. So all ranks get the same bits, and in rank
 * order the same with every reducer.
 *
 * <p>With one rank no bit is changed.
 */
public enum ReduceOp {
  /** The sum; integers wrap around. */
  SUM,
  /** The sum divided by the number of ranks, in the accumulator type. Not defined for integers. */
  AVERAGE,
  /** The minimum, as {@link Math#min(float, float)}: NaN wins, and -0 is less than +0. */
  MIN,
  /** The maximum, as {@link Math#max(float, float)}: NaN wins, and +0 is greater than -0. */
  MAX,
  /** The product; integers wrap around. */
  PROD;

  /**
   * {@return whether this operation adds, as {@link #SUM} and {@link #AVERAGE} do} Only such
   * operations may use a {@linkplain GradientSync.Builder#wire wire type}.
   */
  public boolean adds() {
    return this == SUM || this == AVERAGE;
  }

  /**
   * {@return whether this operation is defined for a type: all but {@link #AVERAGE} of integers}
   *
   * @param type the element type
   */
  public boolean isDefinedFor(DataType type) {
    return this != AVERAGE || type.isFloatingPoint();
  }

  /**
   * Throws an {@link IllegalArgumentException} if this operation {@linkplain #isDefinedFor is not
   * defined} for a type.
   *
   * @param type the element type
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
