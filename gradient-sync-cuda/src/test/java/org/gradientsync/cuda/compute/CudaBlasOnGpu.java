package org.gradientsync.cuda.compute;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.Arrays;
import java.util.SplittableRandom;
import org.gradientsync.DataType;
import org.gradientsync.UnavailableException;
import org.gradientsync.cuda.CudaBuffer;
import org.gradientsync.cuda.CudaDevice;
import org.gradientsync.cuda.CudaGraph;
import org.gradientsync.cuda.CudaStream;
import org.gradientsync.cuda.TestDevices;
import org.gradientsync.cuda.internal.driver.CudaLibrary;
import org.gradientsync.cuda.internal.driver.DriverAccess;
import org.gradientsync.spi.Availability;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Tests cuBLAS on a real GPU, or the error if it is not installed. */
class CudaBlasOnGpu {
  private static final Availability HERE = CudaBlas.availability();

  @Test
  void productsOfDoublesAreRight() {
    requireBlas();
    try (CudaDevice device = TestDevices.open(CudaLibrary.api(), 0);
        CudaBlas blas = CudaBlas.create(device)) {
      for (int[] size : new int[][] {{1, 1, 1}, {2, 3, 5}, {64, 33, 17}, {1, 100, 7}, {3, 0, 4}}) {
        int rows = size[0];
        int inner = size[1];
        int columns = size[2];
        double[] a = numbers(rows * inner, 1);
        double[] b = numbers(inner * columns, 2);
        double[] expected = new double[rows * columns];
        for (int i = 0; i < rows; i++) {
          for (int j = 0; j < columns; j++) {
            for (int k = 0; k < inner; k++) {
              expected[i * columns + j] += a[i * inner + k] * b[k * columns + j];
            }
          }
        }
        try (CudaBuffer deviceA = device.allocate(DataType.FLOAT64, a.length);
            CudaBuffer deviceB = device.allocate(DataType.FLOAT64, b.length);
            CudaBuffer deviceC = device.allocate(DataType.FLOAT64, expected.length)) {
          deviceA.copyFrom(a);
          deviceB.copyFrom(b);
          // the product must overwrite the old values
          double[] result = numbers(expected.length, 3);
          deviceC.copyFrom(result);
          blas.multiply(device.stream(), deviceA, deviceB, deviceC, rows, inner, columns);
          deviceC.copyTo(result);
          assertArrayEquals(expected, result, 1e-12);
        }
      }
    }
  }

  @ParameterizedTest
  @EnumSource(names = {"FLOAT32", "FLOAT64"})
  void productsOfTransposedMatricesAreScaledAndAdded(DataType type) {
    requireBlas();
    try (CudaDevice device = TestDevices.open(CudaLibrary.api(), 0);
        CudaBlas blas = CudaBlas.create(device)) {
      double tolerance = type == DataType.FLOAT32 ? 1e-4 : 1e-12;
      for (int[] size : new int[][] {{1, 1, 1}, {2, 3, 5}, {64, 33, 17}, {1, 100, 7}, {3, 0, 4}}) {
        for (int transposes = 0; transposes < 4; transposes++) {
          boolean a = (transposes & 1) != 0;
          boolean b = (transposes & 2) != 0;
          for (double[] factors : new double[][] {{1, 0}, {0.5, 1}, {-2, 0.25}}) {
            Product product = new Product(size, a, b, factors[0], factors[1]);
            assertArrayEquals(
                product.expected(),
                product.on(blas, device, type, 1),
                tolerance,
                product::toString);
          }
        }
      }
    }
  }

  @Test
  void tf32IsChosenAndGivenUp() {
    requireBlas();
    try (CudaDevice device = TestDevices.open(CudaLibrary.api(), 0);
        CudaBlas blas = CudaBlas.create(device)) {
      Product product = new Product(new int[] {128, 256, 192}, false, true, 1, 0);
      double[] exact = product.expected();
      double[] first = product.on(blas, device, DataType.FLOAT32, 0);
      assertArrayEquals(exact, first, 1e-4);
      blas.setMathMode(CudaBlas.MathMode.TF32);
      double[] rounded = product.on(blas, device, DataType.FLOAT32, 0);
      assertArrayEquals(exact, rounded, 0.1);
      if (DriverAccess.gpu(device).api().capability(0) >= 80
          && System.getenv("NVIDIA_TF32_OVERRIDE") == null) {
        assertFalse(Arrays.equals(first, rounded), "TF32 has rounded nothing");
      }
      assertArrayEquals(rounded, product.on(blas, device, DataType.FLOAT32, 0));
      blas.setMathMode(CudaBlas.MathMode.FLOAT32);
      assertArrayEquals(first, product.on(blas, device, DataType.FLOAT32, 0));
    }
  }

  @Test
  void aWorkspaceOfItsOwnLetsProductsBeCaptured() {
    requireBlas();
    try (CudaDevice device = TestDevices.open(CudaLibrary.api(), 0);
        CudaBlas blas = CudaBlas.create(device);
        CudaBuffer workspace = device.allocate(DataType.FLOAT32, 8 << 20);
        CudaBuffer a = device.allocate(DataType.FLOAT32, 64 * 64);
        CudaBuffer c = device.allocate(DataType.FLOAT32, 64 * 64)) {
      CudaStream stream = device.stream();
      blas.setWorkspace(stream, workspace);
      float[] ones = new float[64 * 64];
      Arrays.fill(ones, 1);
      a.copyFrom(ones);
      // cuBLAS loads its kernels now, not while capturing
      blas.multiply(stream, a, a, c, 64, 64, 64);
      stream.beginCapture();
      blas.multiply(stream, 0.5, a, false, a, true, 1, c, 64, 64, 64);
      try (CudaGraph graph = stream.endCapture()) {
        graph.launch(stream);
        graph.launch(stream);
        for (float value : values(c)) {
          assertEquals(128, value);
        }
      }
    }
  }

  /** A product with its expected result. */
  private record Product(
      int[] size, boolean transposeA, boolean transposeB, double alpha, double beta) {
    private double[] a() {
      return numbers(size[0] * size[1], 1);
    }

    private double[] b() {
      return numbers(size[1] * size[2], 2);
    }

    private double[] before() {
      return numbers(size[0] * size[2], 3);
    }

    private double[] expected() {
      double[] a = a();
      double[] b = b();
      double[] c = before();
      for (int i = 0; i < size[0]; i++) {
        for (int j = 0; j < size[2]; j++) {
          double sum = 0;
          for (int k = 0; k < size[1]; k++) {
            sum +=
                a[transposeA ? k * size[0] + i : i * size[1] + k]
                    * b[transposeB ? j * size[1] + k : k * size[2] + j];
          }
          c[i * size[2] + j] = alpha * sum + beta * c[i * size[2] + j];
        }
      }
      return c;
    }

    /** Computes the product on a GPU, with each buffer at an offset into its allocation. */
    private double[] on(CudaBlas blas, CudaDevice device, DataType type, int offset) {
      double[][] matrices = {a(), b(), before()};
      CudaBuffer[] whole = new CudaBuffer[3];
      CudaBuffer[] part = new CudaBuffer[3];
      for (int i = 0; i < 3; i++) {
        whole[i] = device.allocate(type, matrices[i].length + offset);
        part[i] = (CudaBuffer) whole[i].slice(offset, matrices[i].length);
        upload(matrices[i], part[i]);
      }
      blas.multiply(
          device.stream(),
          alpha,
          part[0],
          transposeA,
          part[1],
          transposeB,
          beta,
          part[2],
          size[0],
          size[1],
          size[2]);
      double[] result = download(part[2]);
      for (CudaBuffer each : whole) {
        each.close();
      }
      return result;
    }

    @Override
    public String toString() {
      return Arrays.toString(size)
          + " a'="
          + transposeA
          + " b'="
          + transposeB
          + " alpha="
          + alpha
          + " beta="
          + beta;
    }
  }

  private static void upload(double[] values, CudaBuffer target) {
    if (target.type() == DataType.FLOAT64) {
      target.copyFrom(values);
    } else {
      float[] floats = new float[values.length];
      for (int i = 0; i < values.length; i++) {
        floats[i] = (float) values[i];
      }
      target.copyFrom(floats);
    }
  }

  private static double[] download(CudaBuffer source) {
    double[] values = new double[(int) source.count()];
    if (source.type() == DataType.FLOAT64) {
      source.copyTo(values);
    } else {
      float[] floats = values(source);
      for (int i = 0; i < floats.length; i++) {
        values[i] = floats[i];
      }
    }
    return values;
  }

  @Test
  void floatsAreMultipliedScaledAndAddedOnAStreamOfChoice() {
    requireBlas();
    try (CudaDevice device = TestDevices.open(CudaLibrary.api(), 0);
        CudaBlas blas = CudaBlas.create(device);
        CudaStream stream = device.createStream();
        CudaBuffer a = device.allocate(DataType.FLOAT32, 6, stream);
        CudaBuffer b = device.allocate(DataType.FLOAT32, 6, stream);
        CudaBuffer c = device.allocate(DataType.FLOAT32, 4, stream)) {
      a.copyFrom(new float[] {1, 2, 3, 4, 5, 6});
      b.copyFrom(new float[] {7, 8, 9, 10, 11, 12});
      blas.multiply(stream, a, b, c, 2, 3, 2);
      assertArrayEquals(new float[] {58, 64, 139, 154}, values(c));
      blas.scale(stream, 0.5, c);
      assertArrayEquals(new float[] {29, 32, 69.5f, 77}, values(c));
      blas.addScaled(stream, -2, (CudaBuffer) a.slice(2, 4), c);
      assertArrayEquals(new float[] {23, 24, 59.5f, 65}, values(c));
    }
  }

  @Test
  void doublesAreScaledAndAdded() {
    requireBlas();
    try (CudaDevice device = TestDevices.open(CudaLibrary.api(), 0);
        CudaBlas blas = CudaBlas.create(device);
        CudaBuffer x = device.allocate(DataType.FLOAT64, 3);
        CudaBuffer y = device.allocate(DataType.FLOAT64, 3)) {
      x.copyFrom(new double[] {1, 2, 3});
      y.copyFrom(new double[] {0.5, 0.25, 0.125});
      blas.addScaled(device.stream(), 10, x, y);
      blas.scale(device.stream(), 2, y);
      double[] result = new double[3];
      y.copyTo(result);
      assertArrayEquals(new double[] {21, 40.5, 60.25}, result);
    }
  }

  @Test
  void whereItIsMissingThatIsSaidInOneLine() {
    Assumptions.assumeFalse(HERE.usable(), "cuBLAS is installed");
    assertEquals(1, HERE.reason().lines().count());
    try (CudaDevice device = TestDevices.open(CudaLibrary.api(), 0)) {
      assertThrows(UnavailableException.class, () -> CudaBlas.create(device));
      device.allocate(DataType.FLOAT32, 1).close(); // the device still works
    }
  }

  private static float[] values(CudaBuffer buffer) {
    float[] values = new float[(int) buffer.count()];
    buffer.copyTo(values);
    return values;
  }

  private static double[] numbers(int count, long seed) {
    return new SplittableRandom(seed).doubles(count, -1, 1).toArray();
  }

  private static void requireBlas() {
    if (!HERE.usable()) {
      System.out.println("not tried here: " + HERE.reason());
    }
    Assumptions.assumeTrue(HERE.usable(), HERE.reason());
  }
}
