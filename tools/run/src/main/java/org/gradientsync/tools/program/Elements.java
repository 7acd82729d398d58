package org.gradientsync.tools.program;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.gradientsync.BFloat16;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.Float16;

/**
 * Some elements of a buffer at a time, as raw bits in longs, so that one comparison serves all
 * types. A buffer may be larger than a Java array. Not thread-safe.
 */
public final class Elements {
  /** The largest number of elements at a time. */
  public static final int MOST = 1 << 16;

  private static final long SHORT_BITS = 0xffffL;
  private static final long INT_BITS = 0xffffffffL;

  private final DataType type;
  private final ByteBuffer memory;

  public Elements(DataType type) {
    this.type = type;
    memory = ByteBuffer.allocateDirect(MOST * type.sizeInBytes()).order(ByteOrder.nativeOrder());
  }

  /** Returns how many elements of a buffer follow from an index on, at most {@link #MOST}. */
  public static int count(DeviceBuffer buffer, long first) {
    return (int) Math.min(MOST, buffer.count() - first);
  }

  public void put(int index, long bits) {
    int offset = index * type.sizeInBytes();
    switch (type.sizeInBytes()) {
      case Short.BYTES -> memory.putShort(offset, (short) bits);
      case Integer.BYTES -> memory.putInt(offset, (int) bits);
      default -> memory.putLong(offset, bits);
    }
  }

  public long get(int index) {
    int offset = index * type.sizeInBytes();
    return switch (type.sizeInBytes()) {
      case Short.BYTES -> memory.getShort(offset) & SHORT_BITS;
      case Integer.BYTES -> memory.getInt(offset) & INT_BITS;
      default -> memory.getLong(offset);
    };
  }

  /** Copies the first elements into a buffer. */
  public void copyTo(DeviceBuffer buffer, long first, int count) {
    try (DeviceBuffer part = buffer.slice(first, count)) {
      part.copyFrom(memory.duplicate().order(memory.order()).limit(count * type.sizeInBytes()));
    }
  }

  /** Copies elements from a buffer. */
  public void copyFrom(DeviceBuffer buffer, long first, int count) {
    try (DeviceBuffer part = buffer.slice(first, count)) {
      part.copyTo(memory.duplicate().order(memory.order()).limit(count * type.sizeInBytes()));
    }
  }

  /**
   * Converts a number to a floating-point type's bits. A value that was a float is rounded only
   * once.
   */
  public static long bits(DataType type, double value) {
    return switch (type) {
      case FLOAT16 -> Float16.fromFloat((float) value) & SHORT_BITS;
      case BFLOAT16 -> BFloat16.fromFloat((float) value) & SHORT_BITS;
      case FLOAT32 -> Float.floatToRawIntBits((float) value) & INT_BITS;
      case FLOAT64 -> Double.doubleToRawLongBits(value);
      case INT32, INT64 -> throw new IllegalArgumentException("not floating-point: " + type);
    };
  }

  /** Converts a floating-point type's bits to a number. */
  public static double value(DataType type, long bits) {
    return switch (type) {
      case FLOAT16 -> Float16.toFloat((short) bits);
      case BFLOAT16 -> BFloat16.toFloat((short) bits);
      case FLOAT32 -> Float.intBitsToFloat((int) bits);
      case FLOAT64 -> Double.longBitsToDouble(bits);
      case INT32, INT64 -> throw new IllegalArgumentException("not floating-point: " + type);
    };
  }
}
