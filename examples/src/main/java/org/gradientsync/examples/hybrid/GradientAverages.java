package org.gradientsync.examples.hybrid;

import java.util.Arrays;
import java.util.List;
import org.gradientsync.DataType;
import org.gradientsync.GradientBuckets;
import org.gradientsync.GradientSync;
import org.gradientsync.Parameter;

/**
 * Averages a stage's gradients over its data group. Averages of full buckets run while the last
 * backward pass before an update computes the next gradients.
 *
 * <p>The sums of the gradients are in the arrays of {@link Weights}, where the CPU adds to them. A
 * gradient is copied to its bucket once for an update, when it is complete. So the buckets see one
 * backward pass for each update, and {@link GradientBuckets#noSync} is not needed.
 */
final class GradientAverages implements AutoCloseable {
  private final List<Weights> weights;
  private final GradientBuckets buckets;

  /** Collective over the data group. */
  GradientAverages(GradientSync data, List<Weights> weights) {
    this.weights = weights;
    buckets =
        GradientBuckets.builder(
                data,
                weights.stream()
                    .map(w -> new Parameter(w.name(), DataType.FLOAT64, w.values().length))
                    .toList())
            .build();
  }

  /** Marks a gradient as complete. */
  void ready(int index) {
    buckets.gradient(index).copyFrom(weights.get(index).gradients());
    buckets.ready(index);
  }

  /** Updates all weights with the averages, and clears the gradients. */
  void update(double rate) {
    buckets.finish(index -> update(index, rate));
  }

  private void update(int index, double rate) {
    double[] values = weights.get(index).values();
    double[] gradients = weights.get(index).gradients();
    buckets.gradient(index).copyTo(gradients);
    for (int i = 0; i < values.length; i++) {
      values[i] -= rate * gradients[i];
    }
    Arrays.fill(gradients, 0);
  }

  @Override
  public void close() {
    buckets.close();
  }
}
