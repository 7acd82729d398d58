package org.gradientsync.examples;

import java.util.SplittableRandom;

/**
 * A perceptron's training step by the textbook, in float64, with numbers that float32 can
 * represent.
 */
final class MlpReference {
  final int[] widths;
  final int rows;
  final double[][] weights;
  final double[] inputs;
  final double[] targets;

  /** The smallest magnitude of a product that relu has seen. */
  double nearestToZero;

  double loss;
  double[][] gradients;

  private MlpReference(int[] widths, int rows, long seed, double least) {
    this.widths = widths;
    this.rows = rows;
    SplittableRandom random = new SplittableRandom(seed);
    weights = new double[widths.length - 1][];
    for (int layer = 0; layer < weights.length; layer++) {
      double range = 2 / Math.sqrt(widths[layer]);
      weights[layer] = numbers(random, widths[layer + 1] * widths[layer], least * range, range);
    }
    inputs = numbers(random, rows * widths[0], least, 1);
    targets = numbers(random, rows * widths[widths.length - 1], 0, 1);
    step();
  }

  /**
   * Creates numbers of both signs, with no product so close to zero that rounding could change
   * relu.
   */
  static MlpReference of(int[] widths, int rows, double margin) {
    for (long seed = 1; ; seed++) {
      MlpReference reference = new MlpReference(widths, rows, seed, -1);
      if (reference.nearestToZero > margin && reference.learns()) {
        return reference;
      }
    }
  }

  /** Creates positive numbers, which relu does not change. */
  static MlpReference positive(int[] widths, int rows) {
    return new MlpReference(widths, rows, 1, 0);
  }

  private boolean learns() {
    for (double[] gradient : gradients) {
      if (largest(gradient) == 0) {
        return false;
      }
    }
    return true;
  }

  static double largest(double[] values) {
    double largest = 0;
    for (double value : values) {
      largest = Math.max(largest, Math.abs(value));
    }
    return largest;
  }

  private static double[] numbers(SplittableRandom random, int count, double from, double to) {
    double[] numbers = new double[count];
    for (int i = 0; i < count; i++) {
      numbers[i] = (float) random.nextDouble(from, to);
    }
    return numbers;
  }

  /** Computes loss and gradients for the current weights. */
  void step() {
    int layers = weights.length;
    double[][] activations = new double[layers + 1][];
    activations[0] = inputs;
    nearestToZero = Double.MAX_VALUE;
    for (int layer = 0; layer < layers; layer++) {
      int in = widths[layer];
      int out = widths[layer + 1];
      activations[layer + 1] = new double[rows * out];
      for (int row = 0; row < rows; row++) {
        for (int o = 0; o < out; o++) {
          double sum = 0;
          for (int i = 0; i < in; i++) {
            sum += weights[layer][o * in + i] * activations[layer][row * in + i];
          }
          nearestToZero = Math.min(nearestToZero, sum == 0 ? nearestToZero : Math.abs(sum));
          activations[layer + 1][row * out + o] = Math.max(0, sum);
        }
      }
    }
    double[] outputs = activations[layers];
    double[] delta = new double[outputs.length];
    loss = 0;
    for (int i = 0; i < outputs.length; i++) {
      double difference = outputs[i] - targets[i];
      loss += difference * difference / outputs.length;
      delta[i] = outputs[i] > 0 ? 2 * difference / outputs.length : 0;
    }
    gradients = new double[layers][];
    for (int layer = layers - 1; layer >= 0; layer--) {
      delta = backward(layer, activations[layer], delta);
    }
  }

  private double[] backward(int layer, double[] activation, double[] delta) {
    int in = widths[layer];
    int out = widths[layer + 1];
    double[] gradient = new double[out * in];
    double[] below = new double[rows * in];
    for (int row = 0; row < rows; row++) {
      for (int o = 0; o < out; o++) {
        for (int i = 0; i < in; i++) {
          gradient[o * in + i] += delta[row * out + o] * activation[row * in + i];
          if (activation[row * in + i] > 0) {
            below[row * in + i] += delta[row * out + o] * weights[layer][o * in + i];
          }
        }
      }
    }
    gradients[layer] = gradient;
    return below;
  }

  /** Makes a step of gradient descent. */
  void update(double rate) {
    for (int layer = 0; layer < weights.length; layer++) {
      for (int i = 0; i < weights[layer].length; i++) {
        weights[layer][i] -= rate * gradients[layer][i];
      }
    }
  }
}
