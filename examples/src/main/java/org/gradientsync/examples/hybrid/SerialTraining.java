package org.gradientsync.examples.hybrid;

import java.util.Arrays;

/**
 * The same training on one rank, with the whole model, row by row. It uses none of the code of the
 * parallel layers, so that it can check them.
 */
public final class SerialTraining {
  private final HybridSettings settings;
  private final int width;
  private final double[][] weights;
  private final double[][] biases;
  private final double[][] weightGradients;
  private final double[][] biasGradients;

  /**
   * Creates the whole model.
   *
   * @param settings those of the parallel training, whose grid and micro-batches are ignored
   */
  public SerialTraining(HybridSettings settings) {
    this.settings = settings;
    int layers = settings.model().layers();
    width = settings.model().width();
    weights = new double[layers][];
    Arrays.setAll(weights, settings.model()::firstWeights);
    biases = new double[layers][width];
    weightGradients = new double[layers][width * width];
    biasGradients = new double[layers][width];
  }

  /**
   * Makes one step.
   *
   * @param step from 0, one after the other
   * @return the loss
   */
  public double step(long step) {
    double[] inputs = settings.model().inputs(step * settings.batch(), settings.batch());
    double[] targets = settings.model().targets(inputs);
    double loss = 0;
    for (int row = 0; row < settings.batch(); row++) {
      int from = row * width;
      loss +=
          passes(
              Arrays.copyOfRange(inputs, from, from + width),
              Arrays.copyOfRange(targets, from, from + width));
    }
    if (settings.updatesAfter(step)) {
      update();
    }
    return loss / settings.batch();
  }

  double[] weights(int layer) {
    return weights[layer];
  }

  double[] bias(int layer) {
    return biases[layer];
  }

  /** Makes the forward and the backward pass of a row, and returns its loss. */
  private double passes(double[] input, double[] target) {
    int layers = weights.length;
    double[][] x = new double[layers + 1][]; // x[l] is what layer l gets
    x[0] = input;
    for (int layer = 0; layer < layers; layer++) {
      x[layer + 1] = forward(layer, x[layer]);
      for (int o = 0; o < width; o++) {
        if (layer % 2 == 0) {
          x[layer + 1][o] = Math.tanh(x[layer + 1][o]);
        } else {
          x[layer + 1][o] += x[layer - 1][o];
        }
      }
    }
    double loss = 0;
    double[] slopes = new double[width];
    for (int o = 0; o < width; o++) {
      double error = x[layers][o] - target[o];
      loss += error * error / width;
      slopes[o] = 2 * error / ((double) width * settings.batch() * settings.accumulate());
    }
    for (int layer = layers - 1; layer > 0; layer -= 2) {
      double[] hidden = x[layer];
      double[] inner = backward(layer, hidden, slopes);
      for (int i = 0; i < width; i++) {
        inner[i] *= 1 - hidden[i] * hidden[i];
      }
      double[] outer = backward(layer - 1, x[layer - 1], inner);
      for (int i = 0; i < width; i++) {
        slopes[i] += outer[i];
      }
    }
    return loss;
  }

  private double[] forward(int layer, double[] x) {
    double[] y = biases[layer].clone();
    for (int i = 0; i < width; i++) {
      for (int o = 0; o < width; o++) {
        y[o] += x[i] * weights[layer][i * width + o];
      }
    }
    return y;
  }

  private double[] backward(int layer, double[] x, double[] slopes) {
    double[] inputSlopes = new double[width];
    for (int i = 0; i < width; i++) {
      for (int o = 0; o < width; o++) {
        weightGradients[layer][i * width + o] += x[i] * slopes[o];
        inputSlopes[i] += weights[layer][i * width + o] * slopes[o];
      }
    }
    for (int o = 0; o < width; o++) {
      biasGradients[layer][o] += slopes[o];
    }
    return inputSlopes;
  }

  private void update() {
    for (int layer = 0; layer < weights.length; layer++) {
      update(weights[layer], weightGradients[layer]);
      update(biases[layer], biasGradients[layer]);
    }
  }

  private void update(double[] values, double[] gradients) {
    for (int i = 0; i < values.length; i++) {
      values[i] -= settings.rate() * gradients[i];
    }
    Arrays.fill(gradients, 0);
  }
}
