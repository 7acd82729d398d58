package org.gradientsync.examples;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.cuda.CudaDevice;
import org.gradientsync.cuda.SimulatedGpu;
import org.gradientsync.cuda.SimulatedGpu.Arguments;
import org.gradientsync.cuda.SimulatedGpu.Floats;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Tests what the engine enqueues, in which order, on a simulated GPU. */
class GpuMlpTest extends GpuMlpContract {
  private final SimulatedGpu gpu = new SimulatedGpu();

  /** Defines the kernels of mlp.cu in Java. */
  @BeforeEach
  void teach() {
    gpu.kernel("relu", (a, blocks) -> relu(a));
    gpu.kernel("mask", (a, blocks) -> mask(a));
    gpu.kernel("update", (a, blocks) -> update(a));
    gpu.kernel("loss", GpuMlpTest::loss);
    gpu.kernel("adam", (a, blocks) -> adam(a));
  }

  @AfterEach
  void close() {
    gpu.close();
  }

  @Override
  CudaDevice gpu() {
    return gpu.device();
  }

  @Override
  GpuMlp engine(int[] widths, int rows, boolean tf32) {
    return new GpuMlp(gpu.device(), gpu.blas(), widths, rows, tf32);
  }

  @Test
  void aStepEnqueuesTheLeast() {
    MlpReference reference = MlpReference.of(new int[] {4, 3, 2}, 2, 0);
    try (GpuMlp engine = start(reference, false)) {
      gpu.takeEnqueued();
      engine.forward(0);
      assertEquals(List.of("multiply", "relu", "multiply", "loss"), gpu.takeEnqueued());
      List<DeviceBuffer> gradients = engine.weights(); // they have the right sizes
      engine.backward(1, gradients.get(1), 1, true);
      // delta 0 comes first
      assertEquals(List.of("multiply", "mask", "multiply"), gpu.takeEnqueued());
      engine.backward(0, gradients.get(0), 1, true);
      assertEquals(List.of("multiply"), gpu.takeEnqueued());
      engine.update(0, gradients.get(0), 1);
      assertEquals(List.of("update"), gpu.takeEnqueued());
    }
  }

  @Test
  void whatRepeatsIsOneGraph() {
    MlpReference reference = MlpReference.of(new int[] {4, 3, 2}, 2, 0);
    try (GpuMlp engine = start(reference, false)) {
      engine.useGraphs();
      gpu.takeEnqueued();
      engine.forward(0);
      assertEquals(List.of("multiply", "relu", "multiply", "loss"), gpu.takeEnqueued());
      engine.forward(0);
      engine.forward(0);
      assertEquals(List.of("graph", "graph"), gpu.takeEnqueued());
      List<DeviceBuffer> gradients = engine.weights(); // they have the right sizes
      engine.backward(1, gradients.get(1), 1, false);
      assertEquals(List.of("multiply", "mask", "multiply"), gpu.takeEnqueued());
      engine.backward(1, gradients.get(1), 1, false);
      engine.backward(1, gradients.get(1), 1, false);
      assertEquals(List.of("graph", "graph", "graph", "graph"), gpu.takeEnqueued());
      engine.backward(1, gradients.get(1), 2, false);
      assertEquals(List.of("graph", "multiply"), gpu.takeEnqueued()); // the delta is the same
    }
  }

  private static void relu(Arguments a) {
    Floats x = a.floats(0);
    for (long i = 0; i < a.integer(1); i++) {
      x.set(i, Math.max(0, x.get(i)));
    }
  }

  private static void mask(Arguments a) {
    Floats delta = a.floats(0);
    Floats activation = a.floats(1);
    for (long i = 0; i < a.integer(2); i++) {
      delta.set(i, activation.get(i) > 0 ? delta.get(i) : 0);
    }
  }

  private static void update(Arguments a) {
    Floats weights = a.floats(0);
    Floats gradient = a.floats(1);
    for (long i = 0; i < a.integer(3); i++) {
      float step = a.real(2) * gradient.get(i);
      weights.set(i, weights.get(i) - step);
    }
  }

  private static void adam(Arguments a) {
    for (long i = 0; i < a.integer(6); i++) {
      float[] one = {a.floats(0).get(i), a.floats(2).get(i), a.floats(3).get(i)};
      adam(one, a.floats(1).get(i), a.real(4), a.real(5));
      a.floats(0).set(i, one[0]);
      a.floats(2).set(i, one[1]);
      a.floats(3).set(i, one[2]);
    }
  }

  private static void loss(Arguments a, int blocks) {
    Floats products = a.floats(0);
    Floats targets = a.floats(1);
    double sum = 0;
    for (long i = 0; i < a.integer(4); i++) {
      float output = Math.max(0, products.get(i));
      float difference = output - targets.get(i);
      products.set(i, output > 0 ? a.real(3) * difference : 0);
      sum += (double) difference * difference;
    }
    for (int block = 0; block < blocks; block++) {
      a.floats(2).setDouble(block, block == 0 ? sum : 0);
    }
  }
}
