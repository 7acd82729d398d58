package org.gradientsync;

/**
 * Converts between {@code float} and bfloat16, the upper half of a binary32 held in a {@code
 * short}. For filling and reading {@link DataType#BFLOAT16} buffers.
 */
public final class BFloat16 {
  /** The canonical quiet NaN. */
  public static final short NAN = 0x7fc0;

  private BFloat16() {}

  /**
   * {@return the same number as a float}
   *
   * @param bits the number's 16 bits
   */
  public static float toFloat(short bits) {
    return Float.intBitsToFloat(bits << 16);
  }

  /**
   * {@return the 16 bits of a float rounded to bfloat16, to nearest even; {@link #NAN} for NaN}
   *
   * @param value any float
   */
  public static short fromFloat(float value) {
    int bits = Float.floatToRawIntBits(value);
    if ((bits & 0x7fffffff) > 0x7f800000) {
      return NAN;
    }
    int tieToEven = bits >>> 16 & 1;
    return (short) (bits + 0x7fff + tieToEven >>> 16);
  }
}
