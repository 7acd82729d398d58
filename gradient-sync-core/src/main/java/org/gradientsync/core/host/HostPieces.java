package org.gradientsync.core.host;

import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.ShortBuffer;
import org.gradientsync.BFloat16;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.Float16;
import org.gradientsync.spi.AbstractDeviceBuffer;

/**
 * Arithmetic on floating-point buffers in double, in a fixed order. Copies one piece of a buffer
 * after the other. Not thread-safe.
 */
final class HostPieces {
  private static final int ELEMENTS = 1 << 16;

  private final double[] values = new double[ELEMENTS];
  private final DoubleBuffer doubles = DoubleBuffer.wrap(values);
  private final FloatBuffer floats = FloatBuffer.allocate(ELEMENTS);
  private final ShortBuffer shorts = ShortBuffer.allocate(ELEMENTS);

  /** Returns the sum of their squares. */
  double sumOfSquares(DeviceBuffer buffer) {
    double sum = 0;
    for (long first = 0; first < buffer.count(); first += ELEMENTS) {
      int count = (int) Math.min(ELEMENTS, buffer.count() - first);
      try (AbstractDeviceBuffer piece = ((AbstractDeviceBuffer) buffer).slice(first, count)) {
        load(piece, count);
      }
      sum += sumOfSquares(count);
    }
    return sum;
  }

  /** Four sums, because one would wait for each addition before the next. */
  private double sumOfSquares(int count) {
    double a = 0;
    double b = 0;
    double c = 0;
    double d = 0;
    int i = 0;
    for (; i + 3 < count; i += 4) {
      a += values[i] * values[i];
      b += values[i + 1] * values[i + 1];
      c += values[i + 2] * values[i + 2];
      d += values[i + 3] * values[i + 3];
    }
    for (; i < count; i++) {
      a += values[i] * values[i];
    }
    return a + b + (c + d);
  }

  /** Multiplies all elements. The product is rounded to the buffer's type. */
  void multiply(DeviceBuffer buffer, double factor) {
    for (long first = 0; first < buffer.count(); first += ELEMENTS) {
      int count = (int) Math.min(ELEMENTS, buffer.count() - first);
      try (AbstractDeviceBuffer piece = ((AbstractDeviceBuffer) buffer).slice(first, count)) {
        load(piece, count);
        for (int i = 0; i < count; i++) {
          values[i] *= factor;
        }
        store(piece, count);
      }
    }
  }

  private void load(AbstractDeviceBuffer piece, int count) {
    switch (piece.type()) {
      case FLOAT16 -> {
        piece.copyToUnintercepted(shorts.limit(count));
        for (int i = 0; i < count; i++) {
          values[i] = Float16.toFloat(shorts.get(i));
        }
      }
      case BFLOAT16 -> {
        piece.copyToUnintercepted(shorts.limit(count));
        for (int i = 0; i < count; i++) {
          values[i] = BFloat16.toFloat(shorts.get(i));
        }
      }
      case FLOAT32 -> {
        piece.copyToUnintercepted(floats.limit(count));
        for (int i = 0; i < count; i++) {
          values[i] = floats.get(i);
        }
      }
      default -> piece.copyToUnintercepted(doubles.limit(count));
    }
  }

  private void store(AbstractDeviceBuffer piece, int count) {
    switch (piece.type()) {
      case FLOAT16 -> {
        for (int i = 0; i < count; i++) {
          shorts.put(i, Float16.fromFloat((float) values[i]));
        }
        piece.copyFromUnintercepted(shorts);
      }
      case BFLOAT16 -> {
        for (int i = 0; i < count; i++) {
          shorts.put(i, BFloat16.fromFloat((float) values[i]));
        }
        piece.copyFromUnintercepted(shorts);
      }
      case FLOAT32 -> {
        for (int i = 0; i < count; i++) {
          floats.put(i, (float) values[i]);
        }
        piece.copyFromUnintercepted(floats);
      }
      default -> piece.copyFromUnintercepted(doubles);
    }
  }
}
