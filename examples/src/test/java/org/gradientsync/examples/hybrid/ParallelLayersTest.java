package org.gradientsync.examples.hybrid;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.gradientsync.GradientSync;
import org.gradientsync.local.LocalRanks;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Compares the parallel layers with the same layers on one rank. */
class ParallelLayersTest {
  private static final double EXACT = 1e-13;
  private static final int WIDTH = 12;
  private static final int ROWS = 5;
  private static final Model MODEL = new Model(4, WIDTH, 7);

  private static double[] slopes() {
    double[] slopes = new double[ROWS * WIDTH];
    Arrays.setAll(slopes, i -> Math.cos(i));
    return slopes;
  }

  private static TensorSum sum(GradientSync sync) {
    return new TensorSum(sync, ROWS * WIDTH);
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 4})
  void aColumnParallelLayerComputesItsOutputs(int ranks) {
    double[] x = MODEL.inputs(0, ROWS);
    double[] weights = MODEL.firstWeights(0);
    int share = WIDTH / ranks;
    LocalRanks.run(
        ranks,
        sync -> {
          try (TensorSum sum = sum(sync)) {
            ColumnParallelLayer layer = new ColumnParallelLayer(MODEL, 0, sum);
            Arrays.fill(layer.part().bias().values(), 0.5);
            double[] y = layer.forward(x);
            assertEquals(ROWS * share, y.length);
            for (int i = 0; i < y.length; i++) {
              int output = sync.rank() * share + i % share;
              double expected = 0.5 + output(x, i / share, weights, output);
              assertEquals(expected, y[i], EXACT);
            }
          }
        });
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 4})
  void aRowParallelLayerAddsUpItsInputsAndOneBias(int ranks) {
    double[] x = MODEL.inputs(0, ROWS);
    double[] weights = MODEL.firstWeights(1);
    int share = WIDTH / ranks;
    LocalRanks.run(
        ranks,
        sync -> {
          try (TensorSum sum = sum(sync)) {
            RowParallelLayer layer = new RowParallelLayer(MODEL, 1, sum);
            Arrays.fill(layer.part().bias().values(), 0.5);
            double[] y = layer.forward(Matrices.columns(x, WIDTH, sync.rank() * share, share));
            for (int i = 0; i < y.length; i++) {
              assertEquals(0.5 + output(x, i / WIDTH, weights, i % WIDTH), y[i], EXACT);
            }
          }
        });
  }

  private static double output(double[] x, int row, double[] weights, int output) {
    double sum = 0;
    for (int i = 0; i < WIDTH; i++) {
      sum += x[row * WIDTH + i] * weights[i * WIDTH + output];
    }
    return sum;
  }

  /** The gradients are those of the serial layers if a small change has the effect they predict. */
  @Test
  void gradientsAreTheSlopesOfTheOutput() {
    LocalRanks.run(
        1,
        sync -> {
          try (TensorSum sum = sum(sync)) {
            LayerPair pair = new LayerPair(MODEL, 0, sum);
            double[] x = MODEL.inputs(0, ROWS);
            double[] inputSlopes = pair.backward(pair.activations(x), slopes(), index -> {});
            for (Weights weights : pair.weights()) {
              for (int i = 0; i < weights.values().length; i += 7) {
                assertEquals(
                    difference(pair, x, weights.values(), i), weights.gradients()[i], 1e-7);
              }
            }
            for (int i = 0; i < x.length; i += 7) {
              assertEquals(difference(pair, x, x, i), inputSlopes[i], 1e-7);
            }
          }
        });
  }

  private static double difference(LayerPair pair, double[] x, double[] values, int i) {
    double step = 1e-5;
    double value = values[i];
    values[i] = value + step;
    double more = weighted(pair.output(pair.activations(x)));
    values[i] = value - step;
    double less = weighted(pair.output(pair.activations(x)));
    values[i] = value;
    return (more - less) / (2 * step);
  }

  private static double weighted(double[] output) {
    double sum = 0;
    double[] slopes = slopes();
    for (int i = 0; i < output.length; i++) {
      sum += slopes[i] * output[i];
    }
    return sum;
  }

  @ParameterizedTest
  @ValueSource(ints = {2, 3, 4})
  void aPairHasTheGradientsOfThePairOnOneRank(int ranks) {
    double[] x = MODEL.inputs(0, ROWS);
    List<Weights> alone = new ArrayList<>();
    double[][] slopesAlone = new double[1][];
    LocalRanks.run(
        1,
        sync -> {
          try (TensorSum sum = sum(sync)) {
            LayerPair pair = new LayerPair(MODEL, 0, sum);
            slopesAlone[0] = pair.backward(pair.activations(x), slopes(), index -> {});
            alone.addAll(pair.weights());
          }
        });
    int share = WIDTH / ranks;
    LocalRanks.run(
        ranks,
        sync -> {
          try (TensorSum sum = sum(sync)) {
            LayerPair pair = new LayerPair(MODEL, 0, sum);
            List<Integer> added = new ArrayList<>();
            assertArrayEquals(
                slopesAlone[0], pair.backward(pair.activations(x), slopes(), added::add), EXACT);
            assertEquals(List.of(3, 2, 1, 0), added);
            int first = sync.rank() * share;
            double[][] expected = {
              Matrices.columns(alone.get(0).gradients(), WIDTH, first, share),
              Arrays.copyOfRange(alone.get(1).gradients(), first, first + share),
              Arrays.copyOfRange(alone.get(2).gradients(), first * WIDTH, (first + share) * WIDTH),
              alone.get(3).gradients()
            };
            for (int i = 0; i < expected.length; i++) {
              assertArrayEquals(expected[i], pair.weights().get(i).gradients(), EXACT);
            }
          }
        });
  }
}
