package org.gradientsync.hooks;

import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.SplittableRandom;
import org.gradientsync.DeviceBuffer;

/**
 * Sends a product of two thin matrices, of a given rank r, in place of each parameter's gradient.
 * The gradient M is taken as a matrix of n rows and m columns. The ranks average M Q, make its
 * columns orthonormal, which gives P, and average the transpose of M times P, which gives the next
 * step's Q. The result is P times the transpose of Q. That averages (n + m) r elements in place of
 * n m, in FLOAT32 (FLOAT64 for FLOAT64 gradients). Parameters for which that is not less are
 * averaged exactly.
 *
 * <p>After Vogels, Karimireddy and Jaggi, "PowerSGD: Practical Low-Rank Gradient Compression for
 * Distributed Optimization", NeurIPS 2019.
 */
public final class PowerSgd extends Compression {
  private final int rank;
  private final Map<String, Long> rows = new HashMap<>();

  /** A parameter's gradient as a matrix, by rows; behind the last element it is zero. */
  private final class Matrix {
    final Part part;
    final int rows;
    final int columns;
    final boolean exact;
    double[] values;

    Matrix(Part part) {
      this.part = part;
      int count = Elements.length(part.gradient());
      long given = PowerSgd.this.rows.getOrDefault(part.parameter().name(), 0L);
      if (given > 0 && count % given != 0) {
        throw new IllegalArgumentException(
            "not a matrix with so many rows: parameter="
                + part.parameter()
                + ", rows="
                + given
                + "; give a divisor of the number of elements");
      }
      rows = given > 0 ? (int) given : Math.max(1, (int) Math.ceil(Math.sqrt(count)));
      columns = (int) (((long) count + rows - 1) / rows);
      exact = ((long) rows + columns) * rank >= count;
    }

    /** The elements of the first average. */
    int first() {
      return exact ? Elements.length(part.gradient()) : rows * rank;
    }

    /** The elements of the second average. */
    int second() {
      return exact ? 0 : columns * rank;
    }

    /** Adds M Q to P. */
    void left(double[] q, double[] p, int at) {
      for (int row = 0, i = 0; i < values.length; row++) {
        for (int column = 0; column < columns && i < values.length; column++, i++) {
          for (int k = 0; k < rank; k++) {
            p[at + row * rank + k] += values[i] * q[column * rank + k];
          }
        }
      }
    }

    /** Adds the transpose of M times P to Q. */
    void right(double[] p, int from, double[] q, int at) {
      for (int row = 0, i = 0; i < values.length; row++) {
        for (int column = 0; column < columns && i < values.length; column++, i++) {
          for (int k = 0; k < rank; k++) {
            q[at + column * rank + k] += values[i] * p[from + row * rank + k];
          }
        }
      }
    }

    /** P times the transpose of Q. */
    double[] product(double[] p, int from, double[] q, int at) {
      double[] product = new double[values.length];
      for (int row = 0, i = 0; i < values.length; row++) {
        for (int column = 0; column < columns && i < values.length; column++, i++) {
          for (int k = 0; k < rank; k++) {
            product[i] += p[from + row * rank + k] * q[at + column * rank + k];
          }
        }
      }
      return product;
    }

    /** The Q of the last step; random numbers, the same on all ranks, where a column is zero. */
    double[] q() {
      double[] q = state("q of ", part, columns * rank).clone();
      for (int k = 0; k < rank; k++) {
        boolean zero = true;
        for (int i = k; i < q.length; i += rank) {
          zero &= q[i] == 0;
        }
        if (zero) {
          SplittableRandom random =
              new SplittableRandom(part.parameter().name().hashCode() + 31 * steps() + k);
          for (int i = k; i < q.length; i += rank) {
            q[i] = random.nextDouble() - 0.5;
          }
        }
      }
      return q;
    }
  }

  /**
   * Creates a hook.
   *
   * @param rank the number of columns of the thin matrices, 1 or more; usually 1 to 4
   * @throws IllegalArgumentException if it is less than 1
   */
  public PowerSgd(int rank) {
    if (rank < 1) {
      throw new IllegalArgumentException("rank must be 1 or more: rank=" + rank);
    }
    this.rank = rank;
  }

  /**
   * Sets the number of rows of a parameter's matrix, whose elements lie row by row. A parameter for
   * which it is not set is taken as about square, which approximates it less well.
   *
   * @param parameter the parameter's name
   * @param newRows 1 or more, a divisor of the number of elements; the first step checks that
   * @return this hook
   * @throws IllegalArgumentException if it is less than 1
   */
  public PowerSgd rows(String parameter, long newRows) {
    if (newRows < 1) {
      throw new IllegalArgumentException(
          "a matrix has 1 row or more: parameter=" + parameter + ", rows=" + newRows);
    }
    rows.put(parameter, newRows);
    return this;
  }

  @Override
  String kind() {
    return "powersgd:" + rank;
  }

  @Override
  void compress(FullBucket bucket) {
    Matrix[] matrices = bucket.parts().stream().map(Matrix::new).toArray(Matrix[]::new);
    double[] first = new double[Arrays.stream(matrices).mapToInt(Matrix::first).sum()];
    double[] second = new double[Arrays.stream(matrices).mapToInt(Matrix::second).sum()];
    int at = 0;
    for (Matrix matrix : matrices) {
      if (matrix.exact) {
        double[] values = Elements.read(matrix.part.gradient());
        System.arraycopy(values, 0, first, at, values.length);
      } else {
        matrix.values = withError(matrix.part);
        matrix.left(matrix.q(), first, at);
      }
      at += matrix.first();
    }
    first = averaged(bucket, "first", first);
    at = 0;
    int next = 0;
    for (Matrix matrix : matrices) {
      if (!matrix.exact) {
        orthonormalize(first, at, matrix.rows);
        matrix.right(first, at, second, next);
      }
      at += matrix.first();
      next += matrix.second();
    }
    second = averaged(bucket, "second", second);
    at = 0;
    next = 0;
    for (Matrix matrix : matrices) {
      if (matrix.exact) {
        Elements.write(Arrays.copyOfRange(first, at, at + matrix.first()), matrix.part.gradient());
      } else {
        double[] result = matrix.product(first, at, second, next);
        Elements.write(result, matrix.part.gradient());
        if (Elements.areFinite(result)) {
          keep("q of ", matrix.part, Arrays.copyOfRange(second, next, next + matrix.second()));
          Arrays.setAll(matrix.values, i -> matrix.values[i] - result[i]);
          keepError(matrix.part, matrix.values);
        }
      }
      at += matrix.first();
      next += matrix.second();
    }
  }

  private double[] averaged(FullBucket bucket, String use, double[] values) {
    DeviceBuffer buffer = scratch(bucket, use, wide(bucket), values.length);
    Elements.write(values, buffer);
    if (values.length > 0) {
      exchange(bucket, buffer);
    }
    return Elements.read(buffer);
  }

  /**
   * Makes columns orthonormal, by Gram and Schmidt. What depends on columns before becomes zero.
   */
  private void orthonormalize(double[] p, int at, int rows) {
    for (int k = 0; k < rank; k++) {
      double before = norm(p, at + k, rows);
      for (int other = 0; other < k; other++) {
        double product = 0;
        for (int i = 0; i < rows; i++) {
          product += p[at + i * rank + k] * p[at + i * rank + other];
        }
        for (int i = 0; i < rows; i++) {
          p[at + i * rank + k] -= product * p[at + i * rank + other];
        }
      }
      double norm = norm(p, at + k, rows);
      double factor = norm <= 1e-6 * before ? 0 : 1 / norm;
      for (int i = 0; i < rows; i++) {
        p[at + i * rank + k] *= factor;
      }
    }
  }

  private double norm(double[] p, int at, int rows) {
    double squares = 0;
    for (int i = 0; i < rows; i++) {
      squares += p[at + i * rank] * p[at + i * rank];
    }
    return Math.sqrt(squares);
  }
}
