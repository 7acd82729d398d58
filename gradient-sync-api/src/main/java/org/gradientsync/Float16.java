package org.gradientsync;

/**
 * Converts between {@code float} and IEEE 754 binary16 held in a {@code short}. For filling and
 * reading {@link DataType#FLOAT16} buffers. Java itself has these conversions from version 20.
 */
public final class Float16 {
  /** The canonical quiet NaN. */
  public static final short NAN = 0x7e00;

  private Float16() {}

  /**
   * {@return the same number as a float}
   *
   * @param bits the number's 16 bits
   */
  public static float toFloat(short bits) {
    int sign = (bits & 0x8000) << 16;
    int exponent = bits >>> 10 & 0x1f;
    int fraction = bits & 0x3ff;
    if (exponent == 0x1f) {
      return fraction == 0 ? Float.intBitsToFloat(sign | 0x7f800000) : Float.NaN;
    }
    if (exponent == 0) {
      float magnitude = fraction * 0x1p-24f; // exact: a denormal half is a normal float
      return sign == 0 ? magnitude : -magnitude;
    }
    return Float.intBitsToFloat(sign | exponent + (127 - 15) << 23 | fraction << 13);
  }

  /**
   * {@return the 16 bits of a float rounded to half precision, to nearest even; infinity from 65520
   * on, {@link #NAN} for NaN}
   *
   * @param value any float
   */
  public static short fromFloat(float value) {
    int bits = Float.floatToRawIntBits(value);
    int sign = bits >>> 16 & 0x8000;
    int magnitude = bits & 0x7fffffff;
    if (magnitude > 0x7f800000) {
      return NAN;
    }
    if (magnitude
        >= 0x477ff000) { // 65520, halfway between the largest half and the next power of two
      return (short) (sign | 0x7c00);
    }
    if (magnitude >= 0x38800000) { // 2^-14, the smallest normal half
      int tieToEven = magnitude >>> 13 & 1;
      return (short) (sign | (magnitude - 0x38000000 + 0xfff + tieToEven) >>> 13);
    }
    // Denormal halves are multiples of 2^-24. Adding 0.5 aligns that unit with the float's last
    // bit, so the float addition rounds.
    float shifted = Float.intBitsToFloat(magnitude) + 0.5f;
    return (short) (sign | Float.floatToRawIntBits(shifted) - 0x3f000000);
  }
}
