package org.gradientsync.core.host;

import java.nio.Buffer;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.ShortBuffer;
import org.gradientsync.DataType;

/**
 * Searches for NaN and infinities, whose exponents have all bits set. Used by one thread at a time.
 */
final class FiniteScan {
  private final float[] floats = new float[Accumulator.BLOCK];
  private final double[] doubles = new double[Accumulator.BLOCK];
  private final short[] shorts = new short[Accumulator.BLOCK];
  private final Buffer floatBlock = FloatBuffer.wrap(floats);
  private final Buffer doubleBlock = DoubleBuffer.wrap(doubles);
  private final Buffer shortBlock = ShortBuffer.wrap(shorts);

  /** The index of the first element that is not finite, or -1. */
  long first(HostBuffer buffer) {
    Buffer block = block(buffer.type());
    if (block == null) {
      return -1; // integers
    }
    for (long from = 0; from < buffer.count(); from += Accumulator.BLOCK) {
      int count = (int) Math.min(Accumulator.BLOCK, buffer.count() - from);
      buffer.read(from, block, 0, count);
      int index = first(buffer.type(), count);
      if (index >= 0) {
        return from + index;
      }
    }
    return -1;
  }

  private Buffer block(DataType type) {
    return switch (type) {
      case FLOAT32 -> floatBlock;
      case FLOAT64 -> doubleBlock;
      case FLOAT16, BFLOAT16 -> shortBlock;
      case INT32, INT64 -> null;
    };
  }

  private int first(DataType type, int count) {
    return switch (type) {
      case FLOAT32 -> firstFloat(count);
      case FLOAT64 -> firstDouble(count);
      case FLOAT16 -> firstShort(count, 0x7c00);
      case BFLOAT16 -> firstShort(count, 0x7f80);
      case INT32, INT64 -> -1;
    };
  }

  private int firstFloat(int count) {
    float sum = 0; // x * 0 is 0 if x is finite, otherwise NaN: no branch in the loop
    for (int i = 0; i < count; i++) {
      sum += floats[i] * 0;
    }
    for (int i = 0; sum != 0 && i < count; i++) { // true for NaN
      if (!Float.isFinite(floats[i])) {
        return i;
      }
    }
    return -1;
  }

  private int firstDouble(int count) {
    double sum = 0;
    for (int i = 0; i < count; i++) {
      sum += doubles[i] * 0;
    }
    for (int i = 0; sum != 0 && i < count; i++) {
      if (!Double.isFinite(doubles[i])) {
        return i;
      }
    }
    return -1;
  }

  private int firstShort(int count, int exponent) {
    for (int i = 0; i < count; i++) {
      if ((shorts[i] & exponent) == exponent) {
        return i;
      }
    }
    return -1;
  }
}
