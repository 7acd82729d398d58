package org.gradientsync.hooks;

/** Columns of a thin matrix whose rows lie one after the other, each of {@code rank} elements. */
final class Columns {
  private Columns() {}

  /**
   * Makes columns orthonormal, by Gram and Schmidt. What depends on columns before becomes zero.
   */
  static void orthonormalize(double[] p, int at, int rows, int rank) {
    for (int k = 0; k < rank; k++) {
      scale(p, at + k, rows, rank);
      double before = norm(p, at + k, rows, rank);
      for (int other = 0; other < k; other++) {
        double product = 0;
        for (int i = 0; i < rows; i++) {
          product += p[at + i * rank + k] * p[at + i * rank + other];
        }
        for (int i = 0; i < rows; i++) {
          p[at + i * rank + k] -= product * p[at + i * rank + other];
        }
      }
      double norm = norm(p, at + k, rows, rank);
      double factor = norm <= 1e-6 * before ? 0 : 1 / norm;
      for (int i = 0; i < rows; i++) {
        p[at + i * rank + k] *= factor;
      }
    }
  }

  /**
   * Scales a column by a power of two to about 1, so that neither its squares nor products with a
   * gradient leave the range of their type. Does not change what becomes of it: it is normalized.
   */
  static void scale(double[] values, int at, int rows, int rank) {
    double most = 0;
    for (int i = 0; i < rows; i++) {
      most = Math.max(most, Math.abs(values[at + i * rank]));
    }
    int exponent = most == 0 || !Double.isFinite(most) ? 0 : Math.getExponent(most);
    for (int i = 0; exponent != 0 && i < rows; i++) {
      values[at + i * rank] = Math.scalb(values[at + i * rank], -exponent);
    }
  }

  private static double norm(double[] p, int at, int rows, int rank) {
    double squares = 0;
    for (int i = 0; i < rows; i++) {
      squares += p[at + i * rank] * p[at + i * rank];
    }
    return Math.sqrt(squares);
  }
}
