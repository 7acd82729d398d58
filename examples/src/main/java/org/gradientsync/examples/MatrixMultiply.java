package org.gradientsync.examples;

import java.nio.FloatBuffer;
import java.util.Arrays;
import java.util.random.RandomGenerator;
import org.gradientsync.Communicator;
import org.gradientsync.GradientSync;
import org.gradientsync.cuda.CudaDevice;
import org.gradientsync.cuda.compute.CudaBlas;
import org.gradientsync.tools.program.RankedProgram;
import org.gradientsync.tools.program.Units;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** Multiplies two square matrices: scatters rows of A, broadcasts B, and gathers C. */
@Command(
    name = "matrix-multiply",
    description = "Multiplies two square matrices, of which each rank computes some rows.")
public class MatrixMultiply extends RankedProgram {
  /** Up to this size the check takes no noticeable time. */
  private static final int ALWAYS_CHECKED = 512;

  /** A larger matrix with its padding may not fit into one Java array. */
  private static final int LARGEST = 16_384;

  private static final long SEED = 1;

  @Option(
      names = "--n",
      paramLabel = "N",
      defaultValue = "256",
      description = "Rows and columns of each matrix (default: ${DEFAULT-VALUE}).")
  private int n;

  @Option(
      names = "--check",
      description =
          "Compare with a direct product on rank 0; always done up to N = " + ALWAYS_CHECKED + ".")
  private boolean check;

  /**
   * Runs the program.
   *
   * @param args the command line
   */
  public static void main(String[] args) {
    start(new MatrixMultiply(), args);
  }

  @Override
  public void checkOptions() {
    requireAtLeast(1, "--n", n);
    requireAtMost(LARGEST, "--n", n);
  }

  @Override
  public int run(GradientSync sync) {
    Communicator communicator = sync.communicator();
    boolean root = sync.rank() == 0;
    // Scatter and gather take the same count on all ranks. If the rows do not divide evenly, the
    // last ranks get rows of padding, which nobody computes.
    int share = (n + sync.size() - 1) / sync.size();
    int rows = Math.max(0, Math.min(share, n - sync.rank() * share));
    print(sync, "Ranks: %d, launcher %s", sync.size(), sync.launcher());
    print(sync, "Rows per rank: %d", share);

    float[] a = null;
    float[] b = new float[n * n];
    if (root) {
      RandomGenerator random = random(SEED, 0);
      a = new float[share * sync.size() * n];
      fill(a, n * n, random);
      fill(b, n * n, random);
    }
    stage(sync, "distributing the matrices");
    long start = System.nanoTime();
    float[] ownA = new float[share * n];
    communicator.scatter(root ? FloatBuffer.wrap(a) : null, FloatBuffer.wrap(ownA), 0);
    communicator.broadcast(FloatBuffer.wrap(b), 0);
    long distributed = System.nanoTime();

    stage(sync, "multiplying");
    float[] ownC = new float[share * n];
    boolean exact = true;
    double kernel = 0;
    if (sync.device() instanceof CudaDevice gpu) {
      boolean blas = everywhere(sync, CudaBlas.availability().usable());
      if (blas) {
        print(sync, "Multiplied by cuBLAS on the GPU (%s).", gpu.name());
      } else {
        print(
            sync, "Multiplied by this program's kernel on the GPU (%s): %s.", gpu.name(), noBlas());
      }
      kernel = new GpuProduct(gpu, blas).multiply(ownA, b, ownC, rows, n);
      exact = !blas; // cuBLAS adds in another order
    } else {
      multiply(ownA, b, ownC, rows, n);
    }
    sync.barrier(); // waiting for the slowest rank is not communication
    long multiplied = System.nanoTime();

    stage(sync, "gathering the product");
    float[] c = root ? new float[share * sync.size() * n] : null;
    communicator.gather(FloatBuffer.wrap(ownC), root ? FloatBuffer.wrap(c) : null, 0);
    long gathered = System.nanoTime();

    print(sync, "Result shape: (%d, %d)", n, n);
    if (sync.device() instanceof CudaDevice) {
      print(sync, "Kernel time (GPU only): %s", Units.time(kernel));
      print(
          sync,
          "Compute time (GPU, with copies and first use): %s",
          Units.time(milliseconds(multiplied - distributed)));
    } else {
      print(
          sync,
          "Compute time (CPU, first call): %s",
          Units.time(milliseconds(multiplied - distributed)));
    }
    print(
        sync,
        "Communication time (first calls): %s",
        Units.time(milliseconds(distributed - start + gathered - multiplied)));
    if (!check && n > ALWAYS_CHECKED) {
      print(sync, "Not checked: --check compares with a direct product.");
      return RIGHT;
    }
    stage(sync, "checking the product");
    boolean right = everywhere(sync, !root || isProduct(a, b, c, exact));
    print(sync, right ? "[PASS] The product is correct." : "[FAIL] The product is not correct.");
    return right ? RIGHT : WRONG;
  }

  /** Computes rows of C = A times B. This is the computation, separate from the communication. */
  void multiply(float[] a, float[] b, float[] c, int rows, int columns) {
    for (int i = 0; i < rows; i++) {
      for (int k = 0; k < columns; k++) {
        float factor = a[i * columns + k];
        for (int j = 0; j < columns; j++) { // along contiguous rows of B and C
          c[i * columns + j] += factor * b[k * columns + j];
        }
      }
    }
  }

  private static String noBlas() {
    String reason = CudaBlas.availability().reason();
    return reason.isEmpty() ? "another rank has no cuBLAS" : reason;
  }

  /**
   * Compares with the definition of a product.
   *
   * @param exact whether c was added up in the same order as {@link #multiply} does, so that the
   *     bits are the same; otherwise rounding errors are allowed
   */
  private boolean isProduct(float[] a, float[] b, float[] c, boolean exact) {
    float[] column = new float[n];
    for (int j = 0; j < n; j++) {
      for (int k = 0; k < n; k++) {
        column[k] = b[k * n + j];
      }
      for (int i = 0; i < n; i++) {
        float sum = 0;
        float size = 0;
        for (int k = 0; k < n; k++) {
          float product = a[i * n + k] * column[k];
          sum += product;
          size += Math.abs(product);
        }
        float is = c[i * n + j];
        boolean right =
            exact
                ? Float.floatToRawIntBits(sum) == Float.floatToRawIntBits(is)
                : Math.abs(sum - is) <= n * Math.ulp(size);
        if (!right) {
          printError("wrong element: row=%d, column=%d, is=%s, expected=%s", i, j, is, sum);
          return false;
        }
      }
    }
    return true;
  }

  private static void fill(float[] matrix, int count, RandomGenerator random) {
    Arrays.fill(matrix, Float.NaN); // padding that got into the product would show
    for (int i = 0; i < count; i++) {
      matrix[i] = random.nextFloat() - 0.5f;
    }
  }
}
