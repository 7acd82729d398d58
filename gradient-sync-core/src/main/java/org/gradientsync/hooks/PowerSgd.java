package org.gradientsync.hooks;

import java.nio.Buffer;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.function.BiConsumer;
import java.util.function.Supplier;
import java.util.function.ToLongFunction;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.core.backend.HostProducts;
import org.gradientsync.spi.BackendDevice;

/**
 * Sends a product of two thin matrices, of a given rank r, in place of each parameter's gradient.
 * The gradient M is taken as a matrix of n rows and m columns. The ranks average M Q, make its
 * columns orthonormal, which gives P, and average the transpose of M times P, which gives the next
 * step's Q. The result is P times the transpose of Q. That averages (n + m) r elements in place of
 * n m, in FLOAT32 (FLOAT64 for FLOAT64 gradients). Parameters for which that is not less are
 * averaged exactly.
 *
 * <p>Computes on the device of the gradients: on a GPU with cuBLAS, and with Java where that cannot
 * be loaded. The columns of P are made orthonormal in Java, so the calling thread waits for the
 * averages. A parameter that is compressed takes 8 bytes of the device's memory for each element,
 * and 4 more where its gradient has 16 bits or is not a whole matrix (twice that for FLOAT64);
 * while it belongs to no buckets, as after {@link org.gradientsync.GradientBuckets#close}, 8 bytes
 * of the Java heap. If the ranks' GPUs or cuBLAS differ, the last product is Java's on all ranks,
 * which is slower, so that all ranks get the same bits.
 *
 * <p>After Vogels, Karimireddy and Jaggi, "PowerSGD: Practical Low-Rank Gradient Compression for
 * Distributed Optimization", NeurIPS 2019.
 */
public final class PowerSgd extends Compression {
  private final int rank;
  private final Map<String, Long> rows = new HashMap<>();

  private final Map<Integer, Plan> plans = new HashMap<>(); // by the bucket's index
  private GradientSync agreed; // the sync whose ranks have compared how they multiply; or null
  private boolean alike; // whether they get the same bits

  /**
   * A part of a bucket's memory: all of a matrix, and without what is behind the gradient's end.
   */
  private record Memory(DeviceBuffer all, DeviceBuffer elements) {}

  /** A parameter's gradient as a matrix, by rows; behind the last element it is zero. */
  private final class Matrix {
    final Part part;
    final int count;
    final int rows;
    final int columns;
    final boolean exact;
    int at; // where P begins in the first average, or the gradient
    int next; // where Q begins in the second average
    DeviceBuffer p;
    DeviceBuffer q;
    double[] kept; // the Q of the last step
    Memory error; // what was not sent
    Memory work; // the gradient and the error; then the next error
    Memory result; // the gradient itself where it is a whole matrix of the wide type

    Matrix(Part part) {
      this.part = part;
      count = Elements.length(part.gradient());
      long given = PowerSgd.this.rows.getOrDefault(part.parameter().name(), 0L);
      if (given > 0 && count % given != 0) {
        throw new IllegalArgumentException(
            ("not a matrix with so many rows: parameter=%s, rows=%s;"
                    + " give a divisor of the number of elements")
                .formatted(part.parameter(), given));
      }
      rows = given > 0 ? (int) given : Math.max(1, (int) Math.ceil(Math.sqrt(count)));
      columns = (int) (((long) count + rows - 1) / rows);
      exact = ((long) rows + columns) * rank >= count;
    }

    long size() {
      return exact ? 0 : (long) rows * columns;
    }

    /** The elements of the first average. */
    int first() {
      return exact ? count : rows * rank;
    }

    /** The elements of the second average. */
    int second() {
      return exact ? 0 : columns * rank;
    }

    Memory memory(DeviceBuffer bucket, long from) {
      if (exact) {
        return null;
      }
      DeviceBuffer all = bucket.slice(from, size());
      return new Memory(all, size() == count ? all : all.slice(0, count));
    }

    /**
     * Copies the Q of the last step; random numbers, alike on all ranks, where a column is zero.
     */
    void begin(double[] second) {
      System.arraycopy(kept, 0, second, next, kept.length);
      for (int k = 0; k < rank; k++) {
        boolean zero = true;
        for (int i = k; i < kept.length; i += rank) {
          zero &= kept[i] == 0;
        }
        if (zero) {
          SplittableRandom random =
              new SplittableRandom(part.parameter().name().hashCode() + 31 * steps() + k);
          for (int i = k; i < kept.length; i += rank) {
            second[next + i] = random.nextDouble() - 0.5;
          }
        }
        Columns.scale(second, next + k, columns, rank);
      }
    }
  }

  /** A bucket's matrices and their memory, allocated by its first call. */
  private final class Plan {
    final FullBucket bucket;
    final BackendDevice device;
    final Matrix[] matrices;
    final Thin first;
    final Thin second;
    boolean fresh = true; // the errors are among what was kept or loaded

    Plan(FullBucket bucket) {
      this.bucket = bucket;
      device = (BackendDevice) bucket.sync().device();
      matrices = bucket.parts().stream().map(Matrix::new).toArray(Matrix[]::new);
      DataType wide = wide(bucket);
      first = new Thin(bucket.allocate(wide, sum(Matrix::first)));
      second = new Thin(bucket.allocate(wide, sum(Matrix::second)));
      ToLongFunction<Matrix> padded = m -> isWhole(m, wide) ? 0 : m.size();
      DeviceBuffer errors = bucket.allocate(wide, hasFeedback() ? sum(Matrix::size) : 0);
      DeviceBuffer work = bucket.allocate(wide, sum(Matrix::size));
      DeviceBuffer results = bucket.allocate(wide, sum(padded));
      int at = 0;
      int next = 0;
      long from = 0;
      long to = 0;
      for (Matrix matrix : matrices) {
        DeviceBuffer gradient = matrix.part.gradient();
        matrix.at = at;
        matrix.next = next;
        matrix.p = first.buffer.slice(at, matrix.first());
        matrix.q = second.buffer.slice(next, matrix.second());
        matrix.work = matrix.memory(work, from);
        matrix.error = hasFeedback() ? matrix.memory(errors, from) : null;
        matrix.result =
            isWhole(matrix, wide) ? new Memory(gradient, gradient) : matrix.memory(results, to);
        at += matrix.first();
        next += matrix.second();
        from += matrix.size();
        to += padded.applyAsLong(matrix);
      }
    }

    private boolean isWhole(Matrix matrix, DataType wide) {
      return matrix.size() == matrix.count && matrix.part.gradient().type() == wide;
    }

    private long sum(ToLongFunction<Matrix> elements) {
      return Arrays.stream(matrices).mapToLong(elements).sum();
    }

    /** Copies, or converts between types. */
    void move(DeviceBuffer from, DeviceBuffer to) {
      if (from.type() == to.type()) {
        device.copy(from, to);
      } else {
        device.convert(from, to);
      }
    }

    /** Takes what was kept or loaded, the errors to the device. */
    void upload() {
      for (Matrix matrix : matrices) {
        if (!matrix.exact) {
          matrix.kept = state("q of ", matrix.part, matrix.second());
        }
        if (matrix.error != null) {
          double[] error = take(ERROR, matrix.part, matrix.count);
          if (error == null) {
            matrix.error.elements.fillZero();
          } else {
            Elements.write(error, matrix.error.elements);
          }
        }
      }
      fresh = false;
    }

    /** Adds the errors to the gradients, and averages M Q. */
    void left() {
      for (Matrix m : matrices) {
        if (m.exact) {
          move(m.part.gradient(), m.p);
        } else {
          move(m.part.gradient(), m.work.elements);
          if (hasFeedback()) {
            device.addScaled(1, m.error.elements, m.work.elements);
          }
          m.begin(second.values);
        }
      }
      second.write();
      for (Matrix m : matrices) {
        if (!m.exact) {
          device.multiply(1, m.work.all, false, m.q, false, 0, m.p, m.rows, m.columns, rank);
        }
      }
      first.average(bucket);
    }

    /** Makes P orthonormal, and averages the transpose of M times P. */
    void right() {
      for (Matrix m : matrices) {
        if (!m.exact) {
          Columns.orthonormalize(first.values, m.at, m.rows, rank);
        }
      }
      first.write();
      for (Matrix m : matrices) {
        if (!m.exact) {
          device.multiply(1, m.work.all, true, m.p, false, 0, m.q, m.columns, m.rows, rank);
        }
      }
      second.average(bucket);
    }

    /** Replaces the gradients by P times the transpose of Q, and keeps what they lack. */
    void finish() {
      for (Matrix m : matrices) {
        if (m.exact) {
          move(m.p, m.part.gradient());
        } else {
          if (alike) {
            device.multiply(1, m.p, false, m.q, true, 0, m.result.all, m.rows, rank, m.columns);
          } else { // the result has to be the same on all ranks
            HostProducts.multiply(
                1, m.p, false, m.q, true, 0, m.result.all, m.rows, rank, m.columns);
          }
          if (m.result.elements != m.part.gradient()) {
            move(m.result.elements, m.part.gradient());
          }
        }
      }
      boolean finite = device.firstNotFinite(bucket.gradients()) < 0; // one wait for all
      for (Matrix m : matrices) {
        if (!m.exact && (finite || device.firstNotFinite(m.part.gradient()) < 0)) {
          System.arraycopy(second.values, m.next, m.kept, 0, m.kept.length);
          if (hasFeedback()) {
            device.addScaled(-1, m.result.elements, m.work.elements);
            Memory before = m.error;
            m.error = m.work;
            m.work = before;
          }
        }
      }
    }
  }

  /** The thin matrices of a bucket, on the device and in Java. */
  private final class Thin {
    final DeviceBuffer buffer;
    final double[] values;
    private final Buffer copy;

    Thin(DeviceBuffer buffer) {
      this.buffer = buffer;
      values = new double[Elements.length(buffer)];
      copy =
          buffer.type() == DataType.FLOAT64
              ? DoubleBuffer.wrap(values)
              : FloatBuffer.allocate(values.length);
    }

    void average(FullBucket bucket) {
      if (values.length > 0) {
        exchange(bucket, buffer);
      }
      buffer.copyTo(copy);
      if (copy instanceof FloatBuffer floats) {
        for (int i = 0; i < values.length; i++) {
          values[i] = floats.get(i);
        }
      }
    }

    void write() {
      if (copy instanceof FloatBuffer floats) {
        for (int i = 0; i < values.length; i++) {
          floats.put(i, (float) values[i]);
        }
      }
      buffer.copyFrom(copy);
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
    Plan plan = plans.get(bucket.index());
    if (plan == null || plan.bucket != bucket) {
      plan = new Plan(bucket);
      plans.put(bucket.index(), plan);
    }
    if (plan.fresh) {
      agree(plan);
      plan.upload();
    }
    plan.left();
    plan.right();
    plan.finish();
  }

  /** Compares how the ranks multiply. Collective, once for all buckets of a sync. */
  private void agree(Plan plan) {
    GradientSync sync = plan.bucket.sync();
    if (sync != agreed) {
      String own = plan.device.products(plan.bucket.gradients());
      List<byte[]> all = sync.communicator().allGather(own.getBytes(StandardCharsets.UTF_8));
      alike = all.stream().allMatch(one -> Arrays.equals(one, all.get(0)));
      agreed = sync;
    }
  }

  /** Keeps a bucket's errors in Java until buckets have the parameters again. */
  @Override
  public void release(FullBucket bucket) {
    Plan plan = plans.get(bucket.index());
    if (plan != null && plan.bucket == bucket) {
      plans.remove(bucket.index());
      if (!plan.device.isClosed()) {
        errors(plan, (part, error) -> keep(ERROR, part, Elements.read(error)));
      }
    }
  }

  @Override
  void addState(Map<String, Supplier<double[]>> entries) {
    for (Plan plan : plans.values()) {
      errors(
          plan,
          (part, error) ->
              entries.put(ERROR + part.parameter().name(), () -> Elements.read(error)));
    }
  }

  @Override
  void rescaleErrors(double factor) {
    for (Plan plan : plans.values()) {
      errors(plan, (part, error) -> plan.device.scale(error, factor));
    }
  }

  private void errors(Plan plan, BiConsumer<Part, DeviceBuffer> use) {
    for (Matrix matrix : plan.matrices) {
      if (!plan.fresh && matrix.error != null) {
        use.accept(matrix.part, matrix.error.elements);
      }
    }
  }

  @Override
  void loaded() {
    plans.values().forEach(plan -> plan.fresh = true);
  }
}
