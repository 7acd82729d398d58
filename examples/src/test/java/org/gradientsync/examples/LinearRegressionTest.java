package org.gradientsync.examples;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.Set;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests the training with ranks as threads. */
class LinearRegressionTest {
  private static final String PASS = "[PASS] All ranks have identical weights.";

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 4})
  void findsTheWeights(int ranks) {
    Run run = Run.of(new LinearRegression(), "--local=" + ranks, "--rows=500").exits(0);
    run.prints(PASS);
    assertTrue(run.number("Step 0, Loss:") > 1, run::toString);
    assertTrue(run.number("Step 99, Loss:") < 0.001, run::toString);
    assertTrue(run.number("Largest error of a weight:") < 0.005, run::toString);
    assertEquals(11, run.out().lines().filter(line -> line.startsWith("Step ")).count());
  }

  @Test
  void runsAlone() {
    Run.of(new LinearRegression(), "--steps=3", "--rows=7", "--features=1").exits(0).prints(PASS);
  }

  @Test
  void withoutStepsTheFirstGuessIsRankZerosEverywhere() {
    Run run = Run.of(new LinearRegression(), "--local=3", "--steps=0").exits(0);
    run.prints(PASS);
    assertTrue(run.number("Largest error of a weight:") > 0.1, run::toString);
  }

  @Test
  void ranksHaveDataOfTheirOwnAndTheSameWeights() {
    Set<Integer> data = Collections.synchronizedSet(new HashSet<>());
    Set<Integer> weightsSeen = Collections.synchronizedSet(new HashSet<>());
    LinearRegression watched =
        new LinearRegression() {
          @Override
          void computeGradient(Data own, float[] weights, float[] gradient) {
            data.add(Arrays.hashCode(own.x()));
            weightsSeen.add(Arrays.hashCode(weights));
            super.computeGradient(own, weights, gradient);
          }
        };
    Run.of(watched, "--local=4", "--steps=2").exits(0);
    assertEquals(4, data.size());
    assertEquals(2, weightsSeen.size()); // one for each step
  }

  @Test
  void oneRankThatDoesNotAverageFails() {
    LinearRegression spoiled =
        new LinearRegression() {
          @Override
          void average(GradientSync sync, DeviceBuffer gradients) {
            super.average(sync, gradients);
            if (sync.rank() == 1) {
              float[] values = new float[(int) gradients.count()];
              gradients.copyTo(values);
              values[0] *= 1.001f;
              gradients.copyFrom(values);
            }
          }
        };
    Run run = Run.of(spoiled, "--local=2", "--steps=1").exits(1);
    run.prints("[FAIL] The ranks have different weights.");
    assertFalse(run.out().contains("PASS"), run::toString);
  }

  @Test
  void divergedTrainingFails() {
    Run.of(new LinearRegression(), "--local=2", "--rate=1e30", "--steps=5", "--rows=10")
        .exits(1)
        .prints("[FAIL] The training has diverged: try a smaller --rate.");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "--steps=-1",
        "--rows=0",
        "--features=0",
        "--rate=0",
        "--rate=-1",
        "--rate=NaN",
        "--rate=Infinity",
        "--rows=2000000000"
      })
  void impossibleValuesAreBadUse(String option) {
    Run.of(new LinearRegression(), "--local=2", option)
        .exits(2)
        .complainsInOneLine(option.substring(0, option.indexOf('=')));
  }
}
