package org.gradientsync.cuda;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.util.Arrays;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.DeviceException;
import org.gradientsync.ReduceOp;
import org.gradientsync.cuda.internal.driver.CudaApi;
import org.gradientsync.cuda.internal.driver.CudaLibrary;
import org.gradientsync.spi.BackendDevice;
import org.gradientsync.test.contract.DeviceBufferContract;
import org.gradientsync.test.contract.Numbers;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Runs the buffer contract on a real GPU, and tests what only GPU buffers have. */
class CudaBufferOnGpu extends DeviceBufferContract {
  @Override
  protected BackendDevice openDevice() {
    return new CudaDevice(CudaLibrary.api(), 0);
  }

  @ParameterizedTest
  @EnumSource
  void theKernelGivesThePromisedBits(DataType type) {
    try (CudaDevice device = new CudaDevice(CudaLibrary.api(), 0)) {
      for (int ranks : new int[] {1, 2, 3, 8}) {
        for (int count : new int[] {1, 513, 100_003}) {
          for (ReduceOp op : ReduceOp.values()) {
            if (op == ReduceOp.AVERAGE && !type.isFloatingPoint()) {
              continue;
            }
            DeviceBuffer[] sources = new DeviceBuffer[ranks];
            for (int rank = 0; rank < ranks; rank++) {
              sources[rank] = device.allocate(type, count + 3).slice(3, count);
              sources[rank].copyFrom(Numbers.of(type, rank, 0, count));
            }
            device.reduce(sources, sources[0], op);
            ByteBuffer result = Numbers.memory(type, count);
            sources[0].copyTo(result);
            if (ranks > 1) {
              assertEquals(
                  -1, Numbers.reduced(type, op, ranks, 0, count).mismatch(result), type + " " + op);
            }
          }
        }
      }
    }
  }

  /** As on three nodes, the last of which has one rank. */
  @ParameterizedTest
  @EnumSource
  void reductionsThatPassFromNodeToNodeHaveTheseBitsToo(DataType type) {
    try (CudaDevice device = new CudaDevice(CudaLibrary.api(), 0)) {
      for (int count : new int[] {1, 513, 100_003}) {
        for (ReduceOp op : ReduceOp.values()) {
          if (op.isDefinedFor(type)) {
            DeviceBuffer[] sources = new DeviceBuffer[6];
            for (int rank = 0; rank < sources.length; rank++) {
              sources[rank] = device.allocate(type, count + 3).slice(3, count);
              sources[rank].copyFrom(Numbers.of(type, rank, 0, count));
            }
            DeviceBuffer running = device.allocate(type.accumulator(), count + 1).slice(1, count);
            device.accumulate(null, Arrays.copyOfRange(sources, 0, 2), running, op);
            device.accumulate(running, Arrays.copyOfRange(sources, 2, 5), running, op);
            device.finish(running, new DeviceBuffer[] {sources[5]}, sources[5], op, 6);
            ByteBuffer result = Numbers.memory(type, count);
            sources[5].copyTo(result);
            assertEquals(
                -1, Numbers.reduced(type, op, 6, 0, count).mismatch(result), type + " " + op);
          }
        }
      }
    }
  }

  /** In the order that all GPUs have, however many processors they have. */
  @Test
  void squaresAreAddedInTheOrderOfEveryGpu() {
    try (CudaDevice device = new CudaDevice(CudaLibrary.api(), 0)) {
      for (int count : new int[] {1, 513, 4_097, 300_007, 5_000_001}) {
        float[] values = new float[count];
        for (int i = 0; i < count; i++) {
          values[i] = (i * 7919L % 10_007 - 5_000) / 97f;
        }
        for (int offset = 0; offset < 4; offset++) {
          try (DeviceBuffer whole = device.allocate(DataType.FLOAT32, offset + count);
              DeviceBuffer buffer = whole.slice(offset, count)) {
            buffer.copyFrom(values);
            assertEquals(squares(values), device.sumOfSquares(buffer), "count=" + count);
          }
        }
      }
    }
  }

  private static double squares(float[] values) {
    int threads = 512;
    int blocks = (int) Math.min(512, (values.length + 4095L) / 4096);
    double sum = 0;
    for (int block = 0; block < blocks; block++) {
      double[] own = new double[threads];
      for (int thread = 0; thread < threads; thread++) {
        for (int i = block * threads + thread; i < values.length; i += blocks * threads) {
          own[thread] += (double) values[i] * values[i];
        }
      }
      for (int half = threads / 2; half > 0; half /= 2) {
        for (int thread = 0; thread < half; thread++) {
          own[thread] += own[thread + half];
        }
      }
      sum += own[0];
    }
    return sum;
  }

  @Test
  void largeCopiesKeepEveryElement() {
    try (CudaDevice device = new CudaDevice(CudaLibrary.api(), 0);
        DeviceBuffer buffer = device.allocate(DataType.INT32, 5_000_001)) {
      int[] data = new int[5_000_001];
      for (int i = 0; i < data.length; i++) {
        data[i] = i * 7;
      }
      buffer.copyFrom(data);
      int[] back = new int[data.length];
      buffer.copyTo(back);
      assertArrayEquals(data, back);
    }
  }

  @Test
  void wrapsMemoryOfThisGpuAndNoOther() {
    try (CudaDevice device = new CudaDevice(CudaLibrary.api(), 0);
        CudaBuffer own = device.allocate(DataType.FLOAT32, 4)) {
      CudaBuffer wrapped = device.wrap(DataType.INT32, own.address() + 4, 2, device.stream());
      wrapped.copyFrom(new int[] {1, Float.floatToRawIntBits(2f)});
      wrapped.close();
      float[] values = new float[4];
      own.copyTo(values);
      assertEquals(2f, values[2]);
      IllegalArgumentException e =
          assertThrows(
              IllegalArgumentException.class,
              () -> device.wrap(DataType.INT32, 0x1234_5678L, 1, device.stream()));
      assertTrue(e.getMessage().contains("0x12345678"), e.getMessage());
      assertThrows(
          IllegalArgumentException.class,
          () -> device.wrap(DataType.INT32, own.address() + 1, 1, device.stream()));
    }
  }

  @Test
  void saysHowMuchMemoryThereIsWhenItIsNotEnough() {
    try (CudaDevice device = new CudaDevice(CudaLibrary.api(), 0)) {
      DeviceException e =
          assertThrows(
              DeviceException.class, () -> device.allocate(DataType.FLOAT64, 1L << 40).close());
      assertTrue(e.getMessage().contains("bytes=" + (8L << 40)), e.getMessage());
      assertTrue(e.getMessage().contains("free="), e.getMessage());
      assertEquals(CudaApi.OUT_OF_MEMORY, e.code());
      device.allocate(DataType.FLOAT64, 10).close();
    }
  }

  @Test
  void eventsTakeTime() {
    try (CudaDevice device = new CudaDevice(CudaLibrary.api(), 0);
        CudaEvent start = device.createEvent(true);
        CudaEvent end = device.createEvent(true);
        DeviceBuffer buffer = device.allocate(DataType.INT32, 1000)) {
      start.record(device.stream());
      buffer.copyFrom(new int[1000]);
      end.record(device.stream());
      end.await();
      assertTrue(end.isDone());
      assertTrue(start.millisecondsTo(end) >= 0);
    }
  }

  @Test
  void ptxThatDoesNotLoadComesWithTheDriversLog() {
    try (CudaDevice device = new CudaDevice(CudaLibrary.api(), 0)) {
      device.makeCurrent();
      DeviceException e =
          assertThrows(
              DeviceException.class,
              () -> CudaLibrary.api().loadModule(".version 7.8\n.target sm_75\nnonsense"));
      assertTrue(e.getMessage().contains("log="), e.getMessage());
      assertTrue(
          e.getMessage().contains("nonsense") || e.getMessage().contains("yntax"), e.getMessage());
    }
  }
}
