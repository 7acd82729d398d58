package org.gradientsync.cuda;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.SplittableRandom;
import org.gradientsync.DataType;
import org.gradientsync.UnavailableException;
import org.gradientsync.spi.Availability;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;

/** cuBLAS on a real GPU, where it is installed; where it is not, that this is said. */
class CudaBlasOnGpu {
  private static final Availability HERE = CudaBlas.availability();

  @Test
  void productsOfDoublesAreRight() {
    requireBlas();
    try (CudaDevice device = new CudaDevice(CudaLibrary.api(), 0);
        CudaBlas blas = device.blas()) {
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
          double[] result = numbers(expected.length, 3); // what was there before is overwritten
          deviceC.copyFrom(result);
          blas.multiply(device.stream(), deviceA, deviceB, deviceC, rows, inner, columns);
          deviceC.copyTo(result);
          assertArrayEquals(expected, result, 1e-12);
        }
      }
    }
  }

  @Test
  void floatsAreMultipliedScaledAndAddedOnAStreamOfChoice() {
    requireBlas();
    try (CudaDevice device = new CudaDevice(CudaLibrary.api(), 0);
        CudaBlas blas = device.blas();
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
    try (CudaDevice device = new CudaDevice(CudaLibrary.api(), 0);
        CudaBlas blas = device.blas();
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
    try (CudaDevice device = new CudaDevice(CudaLibrary.api(), 0)) {
      assertThrows(UnavailableException.class, device::blas);
      device.allocate(DataType.FLOAT32, 1).close(); // the device is none the worse
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
