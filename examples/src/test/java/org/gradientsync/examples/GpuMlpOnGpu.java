package org.gradientsync.examples;

import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.util.List;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.cuda.CudaDevice;
import org.gradientsync.cuda.compute.CudaBlas;
import org.gradientsync.spi.Availability;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Tests the engine on a real GPU with cuBLAS. */
class GpuMlpOnGpu extends GpuMlpContract {
  private GradientSync sync;

  @BeforeEach
  void open() {
    Availability blas = CudaBlas.availability();
    if (!blas.usable()) {
      System.out.println("not tried here: " + blas.reason());
    }
    Assumptions.assumeTrue(blas.usable(), blas.reason());
    sync = GradientSync.builder().device("cuda").create();
  }

  @AfterEach
  void close() {
    if (sync != null) {
      sync.close();
    }
  }

  @Override
  CudaDevice gpu() {
    return (CudaDevice) sync.device();
  }

  @Override
  GpuMlp engine(int[] widths, int rows, boolean tf32) {
    return new GpuMlp(gpu(), widths, rows, tf32);
  }

  @Test
  void stepsAllocateNothing() {
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    long thread = Thread.currentThread().getId();
    MlpReference reference = MlpReference.of(new int[] {64, 128, 32}, 32, 0);
    try (GpuMlp engine = start(reference, true)) {
      List<DeviceBuffer> gradients = backwardOnce(engine);
      steps(engine, gradients, 2000); // the first steps load classes and compile
      long before = threads.getThreadAllocatedBytes(thread);
      steps(engine, gradients, 1000);
      long bytes = threads.getThreadAllocatedBytes(thread) - before;
      assertTrue(bytes < 1000, "bytes allocated in 1000 steps: " + bytes);
      gradients.forEach(DeviceBuffer::close);
    }
  }

  private List<DeviceBuffer> backwardOnce(GpuMlp engine) {
    engine.forward(0);
    return backward(engine, 0, 1, false);
  }

  private static void steps(GpuMlp engine, List<DeviceBuffer> gradients, int steps) {
    for (int step = 0; step < steps; step++) {
      engine.forward(0);
      for (int layer = gradients.size() - 1; layer >= 0; layer--) {
        engine.backward(layer, gradients.get(layer), 0.5, false);
        engine.backward(layer, gradients.get(layer), 0.5, true);
      }
      for (int layer = 0; layer < gradients.size(); layer++) {
        engine.update(layer, gradients.get(layer), 1e-6);
      }
    }
  }
}
