package org.gradientsync.examples;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientBuckets;
import org.gradientsync.GradientSync;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests Adam's numbers on one rank. */
class AdamTest {
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void stepsAreThoseOfThePaper(boolean sharded) {
    try (GradientSync sync = GradientSync.create();
        MlpEngine engine = new HostMlp(sync, new int[] {2, 1}, 1);
        GradientBuckets buckets = buckets(sync, engine, sharded)) {
      if (sharded) {
        engine.useWeights(List.of(buckets.weight(0)));
      }
      double[] weights = {0.5, -3};
      engine.weights().get(0).copyFrom(weights);
      double[] means = new double[2];
      double[] squares = new double[2];
      try (Adam adam = new Adam(sync, engine, buckets, sharded, 0.01)) {
        for (int step = 1; step <= 20; step++) {
          double[] gradient = {step, -1e-3 / step};
          buckets.gradient(0).copyFrom(gradient);
          buckets.ready(0);
          adam.begin(step - 1);
          if (sharded) {
            buckets.finish((g, w, shard) -> adam.update(shard));
          } else {
            buckets.finish(adam::update);
          }
          DeviceBuffer now = engine.weights().get(0);
          for (int i = 0; i < 2; i++) {
            means[i] = 0.9 * means[i] + 0.1 * gradient[i];
            squares[i] = 0.999 * squares[i] + 0.001 * gradient[i] * gradient[i];
            double mean = means[i] / (1 - Math.pow(0.9, step));
            double square = squares[i] / (1 - Math.pow(0.999, step));
            weights[i] -= 0.01 * mean / (Math.sqrt(square) + 1e-8);
            assertEquals(weights[i], Weights.get(now)[i], 1e-12);
          }
        }
      }
    }
  }

  private static GradientBuckets buckets(GradientSync sync, MlpEngine engine, boolean sharded) {
    GradientBuckets.Builder builder = GradientBuckets.builder(sync, engine.parameters());
    return (sharded ? builder.sharded() : builder).build();
  }
}
