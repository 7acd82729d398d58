package org.gradientsync.cuda;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.util.List;
import org.gradientsync.DataType;
import org.gradientsync.UnavailableException;
import org.junit.jupiter.api.Test;

/** Tests how a GPU multiplies, on a simulated one. */
class DeviceProductsTest {
  private static final float[] NUMBERS = {1, 2, 3, 4, 5, 6};

  @Test
  void cuBlasMultipliesWithOneHandleForEachStreamInUse() {
    SimulatedGpu released;
    try (SimulatedGpu gpu = new SimulatedGpu()) {
      released = gpu;
      CudaDevice device = gpu.device();
      device.gpu().blas().use(gpu::blasApi);
      for (int i = 0; i < 3; i++) {
        try (CudaStream stream = device.createStream()) {
          requireProduct(gpu, stream);
          requireProduct(gpu, stream);
          assertEquals(1, gpu.holds().get("cuBLAS"));
        }
      }
      try (CudaStream one = device.createStream();
          CudaStream other = device.createStream()) {
        requireProduct(gpu, one);
        requireProduct(gpu, other);
        assertEquals(2, gpu.holds().get("cuBLAS"));
        CudaBuffer buffer = device.allocate(DataType.FLOAT32, 1, one);
        assertEquals("cuBLAS 120605, simulated", device.products(buffer));
      }
    }
    assertNull(released.holds().get("cuBLAS"));
  }

  /** A is 2 by 3, and B its transpose as it lies there. */
  private static void requireProduct(SimulatedGpu gpu, CudaStream stream) {
    CudaDevice device = gpu.device();
    try (CudaBuffer a = device.allocate(DataType.FLOAT32, 6, stream);
        CudaBuffer c = device.allocate(DataType.FLOAT32, 4, stream);
        CudaBuffer d = device.allocate(DataType.FLOAT32, 4, stream)) {
      a.copyFrom(NUMBERS);
      gpu.takeEnqueued();
      device.multiply(1, a, false, a, true, 0, c, 2, 3, 2);
      device.addScaled(2, c, d);
      assertEquals(List.of("multiply", "addScaled"), gpu.takeEnqueued());
      float[] result = new float[4];
      d.copyTo(result);
      assertArrayEquals(new float[] {28, 64, 64, 154}, result);
    }
  }

  @Test
  void theHostMultipliesWithoutCuBlas() {
    try (SimulatedGpu gpu = new SimulatedGpu()) {
      CudaDevice device = gpu.device();
      device
          .gpu()
          .blas()
          .use(
              () -> {
                throw new UnavailableException("there is none");
              });
      CudaBuffer a = device.allocate(DataType.FLOAT32, 6);
      CudaBuffer c = device.allocate(DataType.FLOAT32, 4);
      a.copyFrom(NUMBERS);
      device.multiply(1, a, false, a, true, 0, c, 2, 3, 2);
      device.addScaled(1, c, c);
      float[] result = new float[4];
      c.copyTo(result);
      assertArrayEquals(new float[] {28, 64, 64, 154}, result);
      assertEquals("Java", device.products(c));
    }
  }
}
