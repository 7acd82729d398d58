package org.gradientsync.examples.djl;

import ai.djl.ndarray.NDArray;
import java.util.ArrayList;
import java.util.List;
import org.gradientsync.DataType;
import org.gradientsync.GradientBuckets;
import org.gradientsync.GradientSync;
import org.gradientsync.Parameter;

/**
 * Copies the gradients into buckets and back: a few averages of many arrays, in memory that ranks
 * of one node share.
 */
final class BucketAverager implements Averager {
  private final List<NDArray> weights;
  private final GradientBuckets buckets;

  BucketAverager(GradientSync sync, List<NDArray> weights) {
    this.weights = weights;
    List<Parameter> parameters = new ArrayList<>();
    for (NDArray weight : weights) {
      parameters.add(new Parameter(weight.getName(), DataType.FLOAT32, weight.size()));
    }
    buckets = GradientBuckets.builder(sync, parameters).build();
  }

  @Override
  public void average() {
    // DJL computes all gradients in one call. So nothing is averaged during the backward pass, but
    // one bucket is while the next one is filled.
    for (int i = weights.size() - 1; i >= 0; i--) {
      try (NDArray gradient = weights.get(i).getGradient()) {
        buckets.gradient(i).copyFrom(gradient.toByteBuffer(true));
      }
      buckets.ready(i);
    }
    buckets.finish(this::copyBack);
  }

  private void copyBack(int parameter) {
    try (NDArray gradient = weights.get(parameter).getGradient()) {
      buckets.gradient(parameter).copyTo(gradient.toByteBuffer(true)); // a view, and no copy
    }
  }

  @Override
  public void close() {
    buckets.close();
  }
}
