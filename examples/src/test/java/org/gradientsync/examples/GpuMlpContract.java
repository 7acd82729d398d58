package org.gradientsync.examples;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.Parameter;
import org.gradientsync.cuda.CudaDevice;
import org.junit.jupiter.api.Test;

/** Tests what the engine must compute on any GPU. */
abstract class GpuMlpContract {
  private static final double SINGLE = 1e-4;
  private static final double TENSOR_CORES = 2e-2;
  static final int[][] SHAPES = {
    {37, 5, 64},
    {1, 1},
    {8, 16, 4},
    {3, 7, 5, 9, 2},
    {6, 4, 4, 4, 4},
    {3, 9, 4, 8, 5, 7, 6, 9, 3, 5}
  };

  abstract CudaDevice gpu();

  abstract GpuMlp engine(int[] widths, int rows, boolean tf32);

  @Test
  void parametersAreTheLayersMatrices() {
    try (GpuMlp engine = engine(new int[] {37, 5, 64}, 3, false)) {
      assertEquals(
          List.of(
              new Parameter("layer0", DataType.FLOAT32, 5 * 37),
              new Parameter("layer1", DataType.FLOAT32, 64 * 5)),
          engine.parameters());
      assertEquals(2, engine.weights().size());
      assertEquals(64 * 5, engine.weights().get(1).count());
    }
  }

  @Test
  void lossAndGradientsAreTheReferences() {
    for (int[] widths : SHAPES) {
      for (int rows : new int[] {1, 3, 8}) {
        check(MlpReference.of(widths, rows, 1e-4), false, SINGLE);
      }
    }
    check(MlpReference.of(new int[] {64, 128, 32}, 32, 1e-5), false, SINGLE);
  }

  @Test
  void withTensorCoresTheyAreNear() {
    for (int[] widths : SHAPES) {
      check(MlpReference.of(widths, 3, 1e-2), true, TENSOR_CORES);
    }
    check(MlpReference.positive(new int[] {64, 128, 32}, 32), true, TENSOR_CORES);
  }

  private void check(MlpReference reference, boolean tf32, double tolerance) {
    try (GpuMlp engine = start(reference, tf32)) {
      engine.forward(0);
      assertEquals(reference.loss, engine.loss(), tolerance * reference.loss);
      List<DeviceBuffer> gradients = backward(engine, 0, 1, false);
      for (int layer = 0; layer < gradients.size(); layer++) {
        assertNear(reference.gradients[layer], 1, gradients.get(layer), tolerance);
      }
      gradients.forEach(DeviceBuffer::close);
    }
  }

  @Test
  void gradientsAreScaledAndAddedUpWhereverTheyLie() {
    for (int[] widths : SHAPES) {
      MlpReference reference = MlpReference.of(widths, 3, 1e-4);
      try (GpuMlp engine = start(reference, false)) {
        engine.forward(0);
        for (int offset = 0; offset < 4; offset++) {
          int last = widths.length - 2;
          for (int layer = last; layer >= 0; layer--) {
            int count = reference.gradients[layer].length;
            float[] values = new float[offset + count + 1];
            Arrays.fill(values, Float.NaN); // must be overwritten, not read
            try (DeviceBuffer whole = gpu().allocate(DataType.FLOAT32, values.length);
                DeviceBuffer gradient = whole.slice(offset, count)) {
              whole.copyFrom(values);
              engine.backward(layer, gradient, 0.5, false);
              assertNear(reference.gradients[layer], 0.5, gradient, SINGLE);
              engine.backward(layer, gradient, 2, true);
              assertNear(reference.gradients[layer], 2.5, gradient, SINGLE);
              whole.copyTo(values);
              for (int i = 0; i < offset; i++) {
                assertTrue(Float.isNaN(values[i]));
              }
              assertTrue(Float.isNaN(values[values.length - 1]));
            }
          }
        }
      }
    }
  }

  @Test
  void updatesSubtractFromEveryWeight() {
    for (int[] widths : SHAPES) {
      for (int offset = 0; offset < 2; offset++) {
        MlpReference reference = MlpReference.of(widths, 3, 0);
        try (GpuMlp engine = start(reference, false)) {
          for (int layer = 0; layer < widths.length - 1; layer++) {
            float[] before = floats(reference.weights[layer]);
            float[] gradient = new float[offset + before.length];
            float[] expected = new float[before.length];
            float rate = 0.3f;
            for (int i = 0; i < before.length; i++) {
              gradient[offset + i] = (i + 1) / 7f;
              float step = rate * gradient[offset + i];
              expected[i] = before[i] - step;
            }
            try (DeviceBuffer whole = gpu().allocate(DataType.FLOAT32, gradient.length)) {
              whole.copyFrom(gradient);
              engine.update(layer, whole.slice(offset, before.length), rate);
              assertArrayEquals(expected, values(engine.weights().get(layer)));
            }
          }
        }
      }
    }
  }

  @Test
  void adamHasTheSameBitsWhereverElementsLie() {
    int count = 1000;
    Random random = new Random(3);
    float[][] all = new float[4][count]; // weights, gradients, means, squares
    for (int i = 0; i < count; i++) {
      all[0][i] = (float) random.nextGaussian();
      all[1][i] = i % 7 == 0 ? 0 : (float) (random.nextGaussian() * Math.pow(10, i % 9 - 6));
      all[2][i] = i < 10 ? 0 : (float) random.nextGaussian() / 10;
      all[3][i] = i < 10 ? 0 : random.nextFloat() / 10;
    }
    float[][] expected = {all[0].clone(), all[2].clone(), all[3].clone()};
    for (int i = 0; i < count; i++) {
      float[] one = {expected[0][i], expected[1][i], expected[2][i]};
      adam(one, all[1][i], 0.01f, 1.5f);
      for (int k = 0; k < 3; k++) {
        expected[k][i] = one[k];
      }
    }
    try (GpuMlp engine = engine(new int[] {5, 6, 3}, 4, false)) {
      for (int[] parts : new int[][] {{count}, {1, 2, 253, 744}}) {
        DeviceBuffer[] whole = new DeviceBuffer[4];
        for (int k = 0; k < 4; k++) {
          whole[k] = gpu().allocate(DataType.FLOAT32, count);
          whole[k].copyFrom(all[k]);
        }
        int first = 0;
        for (int part : parts) {
          int from = first;
          DeviceBuffer[] own =
              Arrays.stream(whole).map(w -> w.slice(from, part)).toArray(DeviceBuffer[]::new);
          engine.adam(new AdamPart(0, true, own[0], own[1], own[2], own[3]), 0.01, 1.5);
          first += part;
        }
        assertArrayEquals(expected[0], values(whole[0]));
        assertArrayEquals(all[1], values(whole[1]));
        assertArrayEquals(expected[1], values(whole[2]));
        assertArrayEquals(expected[2], values(whole[3]));
        Arrays.stream(whole).forEach(DeviceBuffer::close);
      }
    }
  }

  /** One element's step in float: weight, mean and square. */
  static void adam(float[] element, float gradient, float rate, float correction) {
    element[1] = 0.9f * element[1] + 0.1f * gradient;
    element[2] = 0.999f * element[2] + 0.001f * gradient * gradient;
    element[0] -= rate * element[1] / ((float) Math.sqrt(element[2]) * correction + 1e-8f);
  }

  @Test
  void otherBuffersCanHoldTheWeights() {
    MlpReference reference = MlpReference.of(new int[] {5, 6, 4, 3}, 4, 1e-3);
    try (GpuMlp engine = engine(reference.widths, reference.rows, false)) {
      List<DeviceBuffer> others = new ArrayList<>();
      for (double[] layer : reference.weights) {
        others.add(gpu().allocate(DataType.FLOAT32, layer.length + 4).slice(4, layer.length));
      }
      engine.useWeights(others);
      assertEquals(others, engine.weights());
      engine.load(0, reference.inputs, reference.targets);
      for (int layer = 0; layer < others.size(); layer++) {
        others.get(layer).copyFrom(floats(reference.weights[layer]));
      }
      engine.forward(0);
      assertEquals(reference.loss, engine.loss(), SINGLE * reference.loss);
      List<DeviceBuffer> gradients = backward(engine, 0, 1, false);
      for (int layer = 0; layer < gradients.size(); layer++) {
        assertNear(reference.gradients[layer], 1, gradients.get(layer), SINGLE);
        float[] before = values(others.get(layer));
        engine.update(layer, gradients.get(layer), 0.5);
        assertFalse(Arrays.equals(before, values(others.get(layer))));
      }
      gradients.forEach(DeviceBuffer::close);
    }
  }

  @Test
  void stepsAreGradientDescent() {
    MlpReference reference = MlpReference.of(new int[] {37, 5, 64}, 3, 1e-3);
    try (GpuMlp engine = start(reference, false)) {
      for (int step = 0; step < 4; step++) {
        engine.forward(0);
        assertEquals(reference.loss, engine.loss(), 1e-3 * reference.loss);
        List<DeviceBuffer> gradients = backward(engine, step, 1, false);
        for (int layer = 0; layer < gradients.size(); layer++) {
          engine.update(layer, gradients.get(layer), 0.01);
        }
        gradients.forEach(DeviceBuffer::close);
        reference.update(0.01);
        reference.step();
      }
      for (int layer = 0; layer < reference.weights.length; layer++) {
        assertNear(reference.weights[layer], 1, engine.weights().get(layer), SINGLE);
      }
    }
  }

  @Test
  void theSameStepHasTheSameBits() {
    int[] widths = {100, 200, 50};
    MlpReference reference = MlpReference.of(widths, 48, 0);
    for (boolean tf32 : new boolean[] {false, true}) {
      float[][] first = null;
      double loss = 0;
      for (int run = 0; run < 3; run++) {
        try (GpuMlp engine = start(reference, tf32)) {
          engine.load(1, reference.inputs.clone(), new double[reference.targets.length]);
          for (int batch : new int[] {0, 1, 0}) {
            engine.forward(batch);
            List<DeviceBuffer> gradients = backward(engine, 0, 1, false);
            float[][] values = {values(gradients.get(0)), values(gradients.get(1))};
            gradients.forEach(DeviceBuffer::close);
            if (batch == 0) {
              if (first == null) {
                first = values;
                loss = engine.loss();
              }
              assertArrayEquals(first[0], values[0]);
              assertArrayEquals(first[1], values[1]);
              assertEquals(loss, engine.loss());
            } else {
              assertTrue(loss != engine.loss());
            }
          }
        }
      }
    }
  }

  @Test
  void repeatedPassesFollowTheirArguments() {
    MlpReference reference = MlpReference.of(new int[] {5, 6, 4, 3}, 4, 1e-3);
    try (GpuMlp engine = start(reference, false)) {
      engine.load(1, new double[reference.inputs.length], new double[reference.targets.length]);
      engine.forward(0);
      List<DeviceBuffer> some = backward(engine, 0, 1, false);
      List<DeviceBuffer> others = backward(engine, 0, 1, false);
      for (int round = 1; round <= 4; round++) {
        engine.forward(1);
        assertEquals(0, engine.loss());
        engine.forward(0);
        assertEquals(reference.loss, engine.loss(), SINGLE * reference.loss);
        for (int layer = 2; layer >= 0; layer--) {
          engine.backward(layer, some.get(layer), 0.5, false);
          engine.backward(layer, some.get(layer), 0.5, true);
          assertNear(reference.gradients[layer], 1, some.get(layer), SINGLE);
          engine.backward(layer, others.get(layer), 1, true);
          assertNear(reference.gradients[layer], round + 1, others.get(layer), SINGLE);
        }
      }
      for (int layer = 2; layer >= 0; layer--) { // several times, so that graphs replay
        for (int round = 0; round < 3; round++) {
          engine.backward(layer, others.get(layer), 2, true);
        }
        assertNear(reference.gradients[layer], 11, others.get(layer), SINGLE);
      }
      others.get(2).close();
      assertThrows(IllegalStateException.class, () -> engine.backward(2, others.get(2), 2, true));
    }
  }

  @Test
  void batchesAreKeptAndReplaced() {
    MlpReference one = MlpReference.of(new int[] {5, 6, 3}, 4, 1e-3);
    try (GpuMlp engine = start(one, false)) {
      double[] zeros = new double[one.targets.length];
      engine.load(1, new double[one.inputs.length], zeros);
      engine.forward(1);
      assertEquals(0, engine.loss());
      engine.forward(0);
      assertEquals(one.loss, engine.loss(), SINGLE * one.loss);
      engine.load(1, one.inputs, one.targets);
      engine.forward(1);
      assertEquals(one.loss, engine.loss(), SINGLE * one.loss);
    }
  }

  @Test
  void whatDoesNotFitIsRefused() {
    try (GpuMlp engine = engine(new int[] {5, 6, 3}, 4, false);
        DeviceBuffer small = gpu().allocate(DataType.FLOAT32, 29);
        DeviceBuffer doubles = gpu().allocate(DataType.FLOAT64, 30)) {
      assertThrows(IllegalStateException.class, engine::loss);
      assertThrows(IllegalStateException.class, () -> engine.backward(1, small, 1, false));
      assertThrows(
          IllegalArgumentException.class, () -> engine.load(1, new double[20], new double[12]));
      assertThrows(
          IllegalArgumentException.class, () -> engine.load(0, new double[19], new double[12]));
      assertThrows(
          IllegalArgumentException.class, () -> engine.load(0, new double[20], new double[11]));
      engine.load(0, new double[20], new double[12]);
      engine.forward(0);
      assertThrows(IllegalArgumentException.class, () -> engine.backward(0, small, 1, false));
      assertThrows(IllegalArgumentException.class, () -> engine.backward(0, doubles, 1, false));
      assertThrows(IllegalArgumentException.class, () -> engine.update(0, small, 1));
      assertThrows(IllegalArgumentException.class, () -> engine.update(0, doubles, 1));
    }
  }

  GpuMlp start(MlpReference reference, boolean tf32) {
    GpuMlp engine = engine(reference.widths, reference.rows, tf32);
    engine.load(0, reference.inputs, reference.targets);
    for (int layer = 0; layer < reference.weights.length; layer++) {
      engine.weights().get(layer).copyFrom(floats(reference.weights[layer]));
    }
    return engine;
  }

  /** Computes all layers' gradients, each at an offset into its allocation. */
  List<DeviceBuffer> backward(GpuMlp engine, int offset, double scale, boolean accumulate) {
    List<DeviceBuffer> gradients = new ArrayList<>();
    for (DeviceBuffer weight : engine.weights()) {
      DeviceBuffer whole = gpu().allocate(DataType.FLOAT32, offset + weight.count());
      gradients.add(offset == 0 ? whole : whole.slice(offset, weight.count()));
    }
    for (int layer = gradients.size() - 1; layer >= 0; layer--) {
      engine.backward(layer, gradients.get(layer), scale, accumulate);
    }
    return gradients;
  }

  private static void assertNear(
      double[] expected, double factor, DeviceBuffer actual, double tolerance) {
    float[] values = values(actual);
    double allowed = tolerance * factor * MlpReference.largest(expected);
    for (int i = 0; i < values.length; i++) {
      assertEquals(factor * expected[i], values[i], allowed, "element " + i);
    }
  }

  private static float[] values(DeviceBuffer buffer) {
    float[] values = new float[(int) buffer.count()];
    buffer.copyTo(values);
    return values;
  }

  private static float[] floats(double[] values) {
    float[] floats = new float[values.length];
    for (int i = 0; i < floats.length; i++) {
      floats[i] = (float) values[i];
    }
    return floats;
  }
}
