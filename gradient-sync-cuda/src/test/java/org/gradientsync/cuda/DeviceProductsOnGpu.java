package org.gradientsync.cuda;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;
import java.util.SplittableRandom;
import java.util.function.UnaryOperator;
import org.gradientsync.BFloat16;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientBuckets;
import org.gradientsync.GradientSync;
import org.gradientsync.Parameter;
import org.gradientsync.core.backend.HostProducts;
import org.gradientsync.cuda.compute.CudaBlas;
import org.gradientsync.cuda.internal.driver.CudaLibrary;
import org.gradientsync.hooks.PowerSgd;
import org.gradientsync.local.LocalRanks;
import org.gradientsync.spi.Availability;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests products by cuBLAS on a real GPU against the host's, and PowerSGD with them. */
class DeviceProductsOnGpu {
  private static final List<Parameter> MODEL =
      List.of(
          new Parameter("whole", DataType.FLOAT32, 257 * 130),
          new Parameter("padded", DataType.FLOAT32, 20_011),
          new Parameter("exact", DataType.FLOAT32, 9),
          new Parameter("low", DataType.BFLOAT16, 300 * 200),
          new Parameter("wide", DataType.FLOAT64, 90 * 100));

  @BeforeEach
  void requireBlas() {
    Availability here = CudaBlas.availability();
    Assumptions.assumeTrue(here.usable(), here::reason);
  }

  @ParameterizedTest
  @CsvSource({"FLOAT32, 1e-5", "FLOAT64, 1e-13"})
  void productsAreTheHosts(DataType type, double tolerance) {
    try (CudaDevice device = TestDevices.open(CudaLibrary.api(), 0);
        CudaStream stream = device.createStream()) {
      for (int[] size :
          new int[][] {{1000, 777, 4}, {777, 1000, 4}, {1000, 4, 777}, {1, 5000, 1}}) {
        for (int form = 0; form < 4; form++) {
          int rows = size[0];
          int inner = size[1];
          int columns = size[2];
          boolean turnA = form % 2 == 1;
          boolean turnB = form / 2 == 1;
          try (CudaBuffer a = device.allocate(type, (long) rows * inner, stream);
              CudaBuffer b = device.allocate(type, (long) inner * columns, stream);
              CudaBuffer c = device.allocate(type, (long) rows * columns, stream);
              CudaBuffer expected = device.allocate(type, (long) rows * columns, stream)) {
            fill(a, 1);
            fill(b, 2);
            fill(c, 3);
            device.copy(c, expected);
            device.multiply(0.75, a, turnA, b, turnB, -1.5, c, rows, inner, columns);
            HostProducts.multiply(0.75, a, turnA, b, turnB, -1.5, expected, rows, inner, columns);
            double apart = apart(read(c), read(expected));
            assertTrue(apart < tolerance, apart + ", form=" + form);
            assertTrue(device.products(c).startsWith("cuBLAS "), device.products(c));
          }
        }
      }
    }
  }

  /** The ranks have the same bits, and those of host memory but for rounding. */
  @ParameterizedTest
  @ValueSource(strings = {"peer", "host-staged"})
  void powerSgdIsTheHosts(String reducer) {
    GpuRunner runner = new GpuRunner(reducer);
    runner.sizes(); // lets two ranks share a single GPU
    double[][][] results = new double[4][][]; // of two ranks on GPUs, and in host memory
    runner.run(2, UnaryOperator.identity(), sync -> results[sync.rank()] = train(sync));
    LocalRanks.run(2, b -> b.device("host"), sync -> results[2 + sync.rank()] = train(sync));
    for (int i = 0; i < MODEL.size(); i++) {
      assertArrayEquals(results[0][i], results[1][i]);
      double apart = apart(results[0][i], results[2][i]);
      double tolerance =
          switch (MODEL.get(i).type()) {
            case FLOAT64 -> 1e-10;
            case FLOAT32 -> 1e-4;
            default -> 1e-2;
          };
      assertTrue(apart < tolerance, MODEL.get(i) + ": " + apart);
    }
  }

  /** Trains some steps, of which later ones allocate nothing on the device. */
  private static double[][] train(GradientSync sync) {
    PowerSgd hook = new PowerSgd(3).rows("whole", 257).rows("low", 300).rows("wide", 90);
    double[][] sums = new double[MODEL.size()][];
    try (GradientBuckets buckets = GradientBuckets.builder(sync, MODEL).hook(hook).build()) {
      long free = 0;
      for (int step = 0; step < 6; step++) {
        for (int i = MODEL.size() - 1; i >= 0; i--) {
          fill(buckets.gradient(i), 100 * step + 10 * i + sync.rank());
          buckets.ready(i);
        }
        buckets.finish();
        for (int i = 0; i < sums.length; i++) {
          double[] result = read(buckets.gradient(i));
          sums[i] = sums[i] == null ? new double[result.length] : sums[i];
          for (int k = 0; k < result.length; k++) {
            sums[i][k] += result[k];
          }
        }
        if (sync.device() instanceof CudaDevice device) {
          sync.barrier();
          device.makeCurrent();
          long now = CudaLibrary.api().memoryInfo()[0];
          assertTrue(step < 2 || now == free, "free=" + now + ", before=" + free);
          free = now;
          sync.barrier();
        }
      }
    }
    return sums;
  }

  private static void fill(DeviceBuffer buffer, int seed) {
    SplittableRandom random = new SplittableRandom(seed);
    ByteBuffer memory = memory(buffer);
    while (memory.hasRemaining()) {
      double value = random.nextDouble() - 0.5;
      switch (buffer.type()) {
        case FLOAT64 -> memory.putDouble(value);
        case FLOAT32 -> memory.putFloat((float) value);
        default -> memory.putShort(BFloat16.fromFloat((float) value));
      }
    }
    buffer.copyFrom(memory.flip());
  }

  private static double[] read(DeviceBuffer buffer) {
    ByteBuffer memory = memory(buffer);
    buffer.copyTo(memory);
    double[] values = new double[(int) buffer.count()];
    for (int i = 0; i < values.length; i++) {
      values[i] =
          switch (buffer.type()) {
            case FLOAT64 -> memory.getDouble();
            case FLOAT32 -> memory.getFloat();
            default -> BFloat16.toFloat(memory.getShort());
          };
    }
    return values;
  }

  private static ByteBuffer memory(DeviceBuffer buffer) {
    return ByteBuffer.allocateDirect((int) buffer.sizeInBytes()).order(ByteOrder.nativeOrder());
  }

  /** The norm of the difference by the norm; NaN if there is one. */
  private static double apart(double[] values, double[] expected) {
    assertEquals(expected.length, values.length);
    double difference = 0;
    double all = 0;
    for (int i = 0; i < values.length; i++) {
      difference += (values[i] - expected[i]) * (values[i] - expected[i]);
      all += expected[i] * expected[i];
    }
    return Math.sqrt(difference / all);
  }
}
