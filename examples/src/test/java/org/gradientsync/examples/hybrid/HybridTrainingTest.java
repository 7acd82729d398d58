package org.gradientsync.examples.hybrid;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.DoubleBuffer;
import java.util.Arrays;
import java.util.List;
import org.gradientsync.ReduceOp;
import org.gradientsync.local.LocalRanks;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Compares the weights and the losses of the parallel training with those of one rank. */
class HybridTrainingTest {
  private static final int STEPS = 4;
  private static final int WIDTH = 6;
  private static final double EXACT = 1e-13;

  @ParameterizedTest
  @CsvSource({
    "1,1,1,1,1,false",
    "1,1,1,4,2,true",
    "2,1,1,2,1,false",
    "1,2,1,2,1,true",
    "1,1,2,2,2,false",
    "2,2,2,2,1,false",
    "2,2,2,2,2,true",
    "1,3,1,4,1,false",
    "3,1,2,1,4,true",
    "1,4,1,4,1,true"
  })
  void weightsAndLossesAreThoseOfOneRank(
      int tensor, int pipeline, int data, int microBatches, int accumulate, boolean recompute) {
    Grid grid = new Grid(tensor, pipeline, data);
    HybridSettings settings =
        new HybridSettings(
            grid, new Model(8, WIDTH, 3), 16, microBatches, accumulate, 0.5, recompute);
    SerialTraining serial = new SerialTraining(settings);
    double[] expected = new double[STEPS];
    Arrays.setAll(expected, serial::step);
    LocalRanks.run(
        (int) grid.ranks(),
        sync -> {
          try (HybridTraining training = new HybridTraining(sync, settings)) {
            double[] losses = new double[STEPS];
            for (int step = 0; step < STEPS; step++) {
              losses[step] = training.step(step);
            }
            sync.communicator().allReduce(DoubleBuffer.wrap(losses), ReduceOp.SUM);
            assertArrayEquals(expected, losses, EXACT);
            assertTrue(training.hasSameWeights());
            checkWeights(settings, serial, training.stage().weights(), sync.rank());
            ActivationMemory memory = training.stage().memory();
            assertEquals(0, memory.bytesNow());
            assertTrue(memory.mostBytes() <= ActivationMemory.mostBytes(settings, recompute));
            if (grid.stage(sync.rank()) == 0) { // the one with the most, if all have equal layers
              boolean equalStages = 4 % pipeline == 0;
              assertTrue(
                  !equalStages
                      || memory.mostBytes() == ActivationMemory.mostBytes(settings, recompute));
            }
          }
        });
  }

  private static void checkWeights(
      HybridSettings settings, SerialTraining serial, List<Weights> own, int rank) {
    Grid grid = settings.grid();
    int share = WIDTH / grid.tensor();
    int first = grid.tensorRank(rank) * share;
    int layer = 2 * settings.model().firstPair(grid.stage(rank), grid.pipeline());
    for (int i = 0; i < own.size(); i += 2, layer++) {
      double[] weights = serial.weights(layer);
      double[] bias = serial.bias(layer);
      assertEquals("layer" + layer + ".weights", own.get(i).name());
      if (layer % 2 == 0) {
        weights = Matrices.columns(weights, WIDTH, first, share);
        bias = Arrays.copyOfRange(bias, first, first + share);
      } else {
        weights = Arrays.copyOfRange(weights, first * WIDTH, (first + share) * WIDTH);
      }
      assertArrayEquals(weights, own.get(i).values(), EXACT);
      assertArrayEquals(bias, own.get(i + 1).values(), EXACT);
    }
  }
}
