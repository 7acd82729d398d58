package org.gradientsync.hooks;

import java.util.Arrays;
import org.gradientsync.BFloat16;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.Float16;

/** The elements of floating-point buffers as doubles, which is exact for every type. */
final class Elements {
  private Elements() {}

  /** Waits for the values. */
  static double[] read(DeviceBuffer buffer) {
    double[] values = new double[length(buffer)];
    switch (buffer.type()) {
      case FLOAT64 -> buffer.copyTo(values);
      case FLOAT32 -> {
        float[] floats = new float[values.length];
        buffer.copyTo(floats);
        Arrays.setAll(values, i -> floats[i]);
      }
      default -> {
        short[] bits = new short[values.length];
        buffer.copyTo(bits);
        boolean brain = buffer.type() == DataType.BFLOAT16;
        Arrays.setAll(values, i -> brain ? BFloat16.toFloat(bits[i]) : Float16.toFloat(bits[i]));
      }
    }
    return values;
  }

  /** Rounds to the type, types of 16 bits by way of FLOAT32. */
  static void write(double[] values, DeviceBuffer buffer) {
    switch (buffer.type()) {
      case FLOAT64 -> buffer.copyFrom(values);
      case FLOAT32 -> {
        float[] floats = new float[values.length];
        for (int i = 0; i < floats.length; i++) {
          floats[i] = (float) values[i];
        }
        buffer.copyFrom(floats);
      }
      default -> {
        short[] bits = new short[values.length];
        boolean brain = buffer.type() == DataType.BFLOAT16;
        for (int i = 0; i < bits.length; i++) {
          float value = (float) values[i];
          bits[i] = brain ? BFloat16.fromFloat(value) : Float16.fromFloat(value);
        }
        buffer.copyFrom(bits);
      }
    }
  }

  /** Throws if the elements do not fit an array. */
  static int length(DeviceBuffer buffer) {
    if (buffer.count() > Integer.MAX_VALUE - 8) {
      throw new IllegalArgumentException(
          "too many elements to compress: buffer=" + buffer + "; split the parameter");
    }
    return (int) buffer.count();
  }

  static boolean areFinite(double[] values) {
    return Arrays.stream(values).allMatch(Double::isFinite);
  }
}
