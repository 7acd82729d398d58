package org.gradientsync.test.contract;

import java.nio.ByteBuffer;
import java.util.Arrays;
import org.gradientsync.BFloat16;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.Float16;

/** The elements of floating-point buffers as doubles, which is exact for every type. */
final class Doubles {
  private Doubles() {}

  /** Waits for the values. */
  static double[] read(DeviceBuffer buffer) {
    ByteBuffer memory = Numbers.memory(buffer.type(), (int) buffer.count());
    buffer.copyTo(memory);
    return of(buffer.type(), memory);
  }

  /** The elements that raw memory has. */
  static double[] of(DataType type, ByteBuffer memory) {
    double[] values = new double[memory.capacity() / type.sizeInBytes()];
    for (int i = 0; i < values.length; i++) {
      values[i] =
          switch (type) {
            case FLOAT16 -> Float16.toFloat(memory.getShort(2 * i));
            case BFLOAT16 -> BFloat16.toFloat(memory.getShort(2 * i));
            case FLOAT32 -> memory.getFloat(4 * i);
            default -> memory.getDouble(8 * i);
          };
    }
    return values;
  }

  /** Rounds to the type. */
  static void write(DeviceBuffer buffer, double[] values) {
    buffer.copyFrom(memory(buffer.type(), values));
  }

  /** Raw memory with elements, rounded to the type. */
  static ByteBuffer memory(DataType type, double[] values) {
    ByteBuffer memory = Numbers.memory(type, values.length);
    for (int i = 0; i < values.length; i++) {
      switch (type) {
        case FLOAT16 -> memory.putShort(2 * i, Float16.fromFloat((float) values[i]));
        case BFLOAT16 -> memory.putShort(2 * i, BFloat16.fromFloat((float) values[i]));
        case FLOAT32 -> memory.putFloat(4 * i, (float) values[i]);
        default -> memory.putDouble(8 * i, values[i]);
      }
    }
    return memory;
  }

  static void fill(DeviceBuffer buffer, double value) {
    double[] values = new double[(int) buffer.count()];
    Arrays.fill(values, value);
    write(buffer, values);
  }
}
