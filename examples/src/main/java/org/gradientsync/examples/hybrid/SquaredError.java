package org.gradientsync.examples.hybrid;

/** The loss: the mean of the squared errors of all outputs. */
final class SquaredError {
  private SquaredError() {}

  static double loss(double[] outputs, double[] targets) {
    double squares = 0;
    for (int i = 0; i < outputs.length; i++) {
      double error = outputs[i] - targets[i];
      squares += error * error;
    }
    return squares / outputs.length;
  }

  /** Returns the derivatives of the loss, times scale, with respect to the outputs. */
  static double[] slopes(double[] outputs, double[] targets, double scale) {
    double[] slopes = new double[outputs.length];
    for (int i = 0; i < slopes.length; i++) {
      slopes[i] = scale * 2 * (outputs[i] - targets[i]) / slopes.length;
    }
    return slopes;
  }
}
