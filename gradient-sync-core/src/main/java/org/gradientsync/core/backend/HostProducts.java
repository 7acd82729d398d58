package org.gradientsync.core.backend;

import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.spi.AbstractDeviceBuffer;
import org.gradientsync.spi.BackendDevice;

/**
 * Products of row-major matrices, computed in Java for buffers of any device: in double, the result
 * rounded to the buffers' type. The bits depend on the elements only. Copies from and to the device
 * and waits for that; the large matrices go piece by piece.
 */
public final class HostProducts {
  private static final int PIECE = 1 << 16;

  /** What {@link BackendDevice#products} returns for these. */
  public static final String NAME = "Java";

  private HostProducts() {}

  /**
   * Multiplies two matrices, as {@link BackendDevice#multiply} does. Takes 8 bytes of the Java heap
   * for each element of B, and of C if A is transposed.
   *
   * @param alpha a factor
   * @param a rows times inner elements
   * @param transposeA whether A is inner by rows
   * @param b inner times columns elements
   * @param transposeB whether B is columns by inner
   * @param beta a factor; 0 overwrites C, whatever it contains
   * @param c rows times columns elements; must not overlap a or b
   * @param rows the rows of op(A) and C, 0 or more
   * @param inner the columns of op(A) and rows of op(B), 0 or more
   * @param columns the columns of op(B) and C, 0 or more
   * @throws IllegalArgumentException if a buffer has another number of elements, has another type
   *     than c or is neither FLOAT32 nor FLOAT64
   * @throws ArithmeticException if B has more than 2^31 - 1 elements, or so has C and A is
   *     transposed
   */
  public static void multiply(
      double alpha,
      DeviceBuffer a,
      boolean transposeA,
      DeviceBuffer b,
      boolean transposeB,
      double beta,
      DeviceBuffer c,
      int rows,
      int inner,
      int columns) {
    BackendDevice.requireMatrices(a, b, c, rows, inner, columns);
    double[] right = new double[Math.multiplyExact(inner, columns)];
    read(b, 0, right, right.length);
    right = transposeB ? transposed(right, columns, inner) : right;
    if (!transposeA) {
      int most = Math.min(rows, Math.max(1, PIECE / Math.max(1, Math.max(inner, columns))));
      double[] left = new double[most * inner];
      for (int first = 0; first < rows; first += most) {
        int some = Math.min(most, rows - first);
        read(a, (long) first * inner, left, some * inner);
        double[] sums = new double[some * columns];
        for (int i = 0; i < some; i++) {
          for (int k = 0; k < inner; k++) {
            add(left[i * inner + k], right, k * columns, sums, i * columns, columns);
          }
        }
        finish(alpha, sums, beta, c, (long) first * columns);
      }
      return;
    }
    double[] sums = new double[Math.multiplyExact(rows, columns)];
    int most = Math.min(inner, Math.max(1, PIECE / Math.max(1, rows)));
    double[] left = new double[most * rows];
    for (int first = 0; first < inner; first += most) {
      int some = Math.min(most, inner - first);
      read(a, (long) first * rows, left, some * rows);
      for (int k = 0; k < some; k++) {
        for (int i = 0; i < rows; i++) {
          add(left[k * rows + i], right, (first + k) * columns, sums, i * columns, columns);
        }
      }
    }
    finish(alpha, sums, beta, c, 0);
  }

  /** Adds a multiple of one row to another. */
  private static void add(double factor, double[] x, int from, double[] y, int at, int count) {
    for (int j = 0; j < count; j++) {
      y[at + j] += factor * x[from + j];
    }
  }

  private static void finish(double alpha, double[] sums, double beta, DeviceBuffer c, long first) {
    double[] before = new double[beta == 0 ? 0 : sums.length];
    read(c, first, before, before.length);
    for (int i = 0; i < sums.length; i++) {
      sums[i] = alpha * sums[i] + (beta == 0 ? 0 : beta * before[i]);
    }
    write(sums, sums.length, c, first);
  }

  private static double[] transposed(double[] matrix, int rows, int columns) {
    double[] result = new double[matrix.length];
    for (int i = 0; i < matrix.length; i++) {
      result[i % columns * rows + i / columns] = matrix[i];
    }
    return result;
  }

  /**
   * Adds a multiple of one buffer to another, as {@link BackendDevice#addScaled} does.
   *
   * @param factor a factor
   * @param x as many elements as y, of the same type
   * @param y the elements that are changed in place, FLOAT32 or FLOAT64
   * @throws IllegalArgumentException if the buffers do not match, or are of another type
   */
  public static void addScaled(double factor, DeviceBuffer x, DeviceBuffer y) {
    BackendDevice.requireMatrix("x", x, y.count(), y.type());
    BackendDevice.requireMatrix("y", y, y.count(), y.type());
    double[] added = new double[(int) Math.min(PIECE, y.count())];
    double[] sums = new double[added.length];
    for (long first = 0; first < y.count(); first += PIECE) {
      int some = (int) Math.min(PIECE, y.count() - first);
      read(x, first, added, some);
      read(y, first, sums, some);
      add(factor, added, 0, sums, 0, some);
      write(sums, some, y, first);
    }
  }

  private static void read(DeviceBuffer buffer, long first, double[] values, int count) {
    try (AbstractDeviceBuffer piece = ((AbstractDeviceBuffer) buffer).slice(first, count)) {
      if (buffer.type() == DataType.FLOAT64) {
        piece.copyToUnintercepted(DoubleBuffer.wrap(values, 0, count));
        return;
      }
      float[] floats = new float[count];
      piece.copyToUnintercepted(FloatBuffer.wrap(floats));
      for (int i = 0; i < count; i++) {
        values[i] = floats[i];
      }
    }
  }

  private static void write(double[] values, int count, DeviceBuffer buffer, long first) {
    try (AbstractDeviceBuffer piece = ((AbstractDeviceBuffer) buffer).slice(first, count)) {
      if (buffer.type() == DataType.FLOAT64) {
        piece.copyFromUnintercepted(DoubleBuffer.wrap(values, 0, count));
        return;
      }
      float[] floats = new float[count];
      for (int i = 0; i < count; i++) {
        floats[i] = (float) values[i];
      }
      piece.copyFromUnintercepted(FloatBuffer.wrap(floats));
    }
  }
}
