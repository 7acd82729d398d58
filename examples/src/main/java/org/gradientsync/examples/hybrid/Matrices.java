package org.gradientsync.examples.hybrid;

/** Matrix operations. The innermost loops are contiguous, so that the JIT compiler vectorizes. */
final class Matrices {
  private Matrices() {}

  /** Returns a b, where a is rows x inner and b is inner x columns. */
  static double[] product(double[] a, double[] b, int rows, int inner, int columns) {
    double[] c = new double[rows * columns];
    for (int row = 0; row < rows; row++) {
      for (int k = 0; k < inner; k++) {
        addScaled(a[row * inner + k], b, k * columns, c, row * columns, columns);
      }
    }
    return c;
  }

  /** Adds aᵀ b to c, where a is rows x inner and b is rows x columns. */
  static void addTransposedProduct(
      double[] a, double[] b, int rows, int inner, int columns, double[] c) {
    for (int row = 0; row < rows; row++) {
      for (int k = 0; k < inner; k++) {
        addScaled(a[row * inner + k], b, row * columns, c, k * columns, columns);
      }
    }
  }

  private static void addScaled(double factor, double[] b, int from, double[] c, int to, int n) {
    for (int i = 0; i < n; i++) {
      c[to + i] += factor * b[from + i];
    }
  }

  static double[] transpose(double[] a, int rows, int columns) {
    double[] t = new double[a.length];
    for (int row = 0; row < rows; row++) {
      for (int column = 0; column < columns; column++) {
        t[column * rows + row] = a[row * columns + column];
      }
    }
    return t;
  }

  /** Returns some of a matrix's columns. */
  static double[] columns(double[] a, int columns, int first, int count) {
    int rows = a.length / columns;
    double[] part = new double[rows * count];
    for (int row = 0; row < rows; row++) {
      System.arraycopy(a, row * columns + first, part, row * count, count);
    }
    return part;
  }

  static void addRow(double[] row, double[] a) {
    for (int i = 0; i < a.length; i += row.length) {
      addScaled(1, row, 0, a, i, row.length);
    }
  }

  static void addSumOfRows(double[] a, double[] sum) {
    for (int i = 0; i < a.length; i += sum.length) {
      addScaled(1, a, i, sum, 0, sum.length);
    }
  }

  static void add(double[] a, double[] sum) {
    addScaled(1, a, 0, sum, 0, sum.length);
  }
}
