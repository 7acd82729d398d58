package org.gradientsync;

/** The element types of gradients. */
public enum DataType {
  /** IEEE 754 binary16, five exponent and ten fraction bits; held in a {@code short} in Java. */
  FLOAT16(2, true),
  /**
   * The upper half of a binary32, eight exponent and seven fraction bits; held in a {@code short}.
   */
  BFLOAT16(2, true),
  /** IEEE 754 binary32, Java's {@code float}. */
  FLOAT32(4, true),
  /** IEEE 754 binary64, Java's {@code double}. */
  FLOAT64(8, true),
  /** 32-bit two's complement, Java's {@code int}. */
  INT32(4, false),
  /** 64-bit two's complement, Java's {@code long}. */
  INT64(8, false);

  private final int sizeInBytes;
  private final boolean floatingPoint;

  DataType(int sizeInBytes, boolean floatingPoint) {
    this.sizeInBytes = sizeInBytes;
    this.floatingPoint = floatingPoint;
  }

  /** {@return the size of one element, 2, 4 or 8 bytes} */
  public int sizeInBytes() {
    return sizeInBytes;
  }

  /**
   * {@return the type in which a reduction of elements of this type accumulates, before it is
   * rounded once; FLOAT32 for the 16-bit types, otherwise this type}
   */
  public DataType accumulator() {
    return this == FLOAT16 || this == BFLOAT16 ? FLOAT32 : this;
  }

  /**
   * {@return whether elements are floating-point numbers} The other types are integers, which
   * cannot be averaged.
   */
  public boolean isFloatingPoint() {
    return floatingPoint;
  }
}
