package org.gradientsync.examples;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Compares the engine for host memory with the definition of a gradient. */
class HostMlpTest {
  private static final int[] WIDTHS = {5, 8, 6, 3};
  private static final int ROWS = 7;
  private static final double SHIFT = 1e-6;

  private GradientSync sync;
  private HostMlp engine;
  private DeviceBuffer[] gradients;

  @BeforeEach
  void setUp() {
    sync = GradientSync.create();
    engine = new HostMlp(sync, WIDTHS, ROWS);
    gradients = new DeviceBuffer[WIDTHS.length - 1];
    Layer[] layers = HostMlp.layers(WIDTHS);
    for (int i = 0; i < layers.length; i++) {
      gradients[i] = sync.allocate(DataType.FLOAT64, layers[i].count());
      Weights.set(engine.weights().get(i), Weights.start(3, i, layers));
    }
    load(0, 0);
    load(1, ROWS);
  }

  @AfterEach
  void tearDown() {
    engine.close();
    sync.close();
  }

  private void load(int batch, long firstRow) {
    double[] inputs = new double[ROWS * WIDTHS[0]];
    double[] targets = new double[ROWS * WIDTHS[WIDTHS.length - 1]];
    new TeacherData(4, WIDTHS).rows(firstRow, ROWS, inputs, targets);
    engine.load(batch, inputs, targets);
  }

  private void backward(double scale, boolean accumulate) {
    for (int layer = gradients.length - 1; layer >= 0; layer--) {
      engine.backward(layer, gradients[layer], scale, accumulate);
    }
  }

  private double lossOf(int batch) {
    engine.forward(batch);
    return engine.loss();
  }

  @Test
  void gradientIsTheSlopeOfTheLoss() {
    engine.forward(0);
    backward(1, false);
    for (int layer = 0; layer < gradients.length; layer++) {
      double[] gradient = Weights.get(gradients[layer]);
      double[] weights = Weights.get(engine.weights().get(layer));
      double largest = 0;
      for (int i = 0; i < weights.length; i++) {
        double before = weights[i];
        weights[i] = before + SHIFT;
        engine.weights().get(layer).copyFrom(weights);
        double above = lossOf(0);
        weights[i] = before - SHIFT;
        engine.weights().get(layer).copyFrom(weights);
        double below = lossOf(0);
        weights[i] = before;
        engine.weights().get(layer).copyFrom(weights);
        assertEquals(
            (above - below) / (2 * SHIFT), gradient[i], 1e-8, "layer " + layer + ", weight " + i);
        largest = Math.max(largest, Math.abs(gradient[i]));
      }
      assertTrue(largest > 1e-3, "all slopes are small: layer=" + layer);
    }
  }

  @Test
  void lossIsTheMeanSquare() {
    double[] inputs = new double[ROWS * WIDTHS[0]]; // all zero, so all outputs are zero
    double[] targets = new double[ROWS * WIDTHS[WIDTHS.length - 1]];
    double squares = 0;
    for (int i = 0; i < targets.length; i++) {
      targets[i] = i - 4;
      squares += targets[i] * targets[i];
    }
    engine.load(1, inputs, targets); // replaces the previous batch
    assertEquals(squares / targets.length, lossOf(1), 1e-12);
  }

  @Test
  void gradientsAreScaledAndAddedUp() {
    engine.forward(0);
    backward(1, false);
    double[][] first = copies();
    engine.forward(1);
    backward(1, false);
    double[][] second = copies();
    engine.forward(0);
    backward(0.25, false);
    engine.forward(1);
    backward(0.5, true);
    double[][] both = copies();
    for (int layer = 0; layer < both.length; layer++) {
      double[] expected = new double[both[layer].length];
      for (int i = 0; i < expected.length; i++) {
        expected[i] = 0.25 * first[layer][i] + 0.5 * second[layer][i];
      }
      assertArrayEquals(expected, both[layer], 1e-14);
      assertNotEquals(first[layer][0], second[layer][0]);
    }
  }

  private double[][] copies() {
    double[][] copies = new double[gradients.length][];
    for (int i = 0; i < copies.length; i++) {
      copies[i] = Weights.get(gradients[i]);
    }
    return copies;
  }

  @Test
  void updateGoesDownTheSlope() {
    engine.forward(0);
    backward(1, false);
    double[] gradient = Weights.get(gradients[1]);
    double[] expected = Weights.get(engine.weights().get(1));
    for (int i = 0; i < expected.length; i++) {
      expected[i] -= 0.125 * gradient[i];
    }
    engine.update(1, gradients[1], 0.125);
    assertArrayEquals(expected, Weights.get(engine.weights().get(1)));
  }
}
