package org.gradientsync.test.contract;

import java.nio.ByteBuffer;
import java.util.Arrays;
import org.gradientsync.BFloat16;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.Float16;

/** The elements of floating-point buffers as doubles, which is exact for every type. */
final class Doubles {
  private Doubles() {}

  /** Waits for the values. */
  static double[] read(DeviceBuffer buffer) {
    ByteBuffer memory = Numbers.memory(buffer.type(), (int) buffer.count());
    buffer.copyTo(memory);
    double[] values = new double[(int) buffer.count()];
    for (int i = 0; i < values.length; i++) {
      values[i] =
          switch (buffer.type()) {
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
    ByteBuffer memory = Numbers.memory(buffer.type(), values.length);
    for (int i = 0; i < values.length; i++) {
      switch (buffer.type()) {
        case FLOAT16 -> memory.putShort(2 * i, Float16.fromFloat((float) values[i]));
        case BFLOAT16 -> memory.putShort(2 * i, BFloat16.fromFloat((float) values[i]));
        case FLOAT32 -> memory.putFloat(4 * i, (float) values[i]);
        default -> memory.putDouble(8 * i, values[i]);
      }
    }
    buffer.copyFrom(memory);
  }

  static void fill(DeviceBuffer buffer, double value) {
    double[] values = new double[(int) buffer.count()];
    Arrays.fill(values, value);
    write(buffer, values);
  }
}
