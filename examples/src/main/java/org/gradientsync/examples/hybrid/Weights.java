package org.gradientsync.examples.hybrid;

/** The values of a parameter on this rank, and the sum of its gradients since the last update. */
record Weights(String name, double[] values, double[] gradients) {
  Weights(String name, double[] firstValues) {
    this(name, firstValues, new double[firstValues.length]);
  }
}
