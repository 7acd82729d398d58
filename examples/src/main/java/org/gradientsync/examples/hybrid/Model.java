package org.gradientsync.examples.hybrid;

import java.util.SplittableRandom;

/**
 * A multi-layer perceptron of pairs of layers. A pair computes {@code x + tanh(x A + a) B + b},
 * where A and a are the weights and the bias of its first layer, B and b those of its second layer.
 *
 * @param layers the number of layers, an even number
 * @param width the number of inputs, and of outputs of each layer
 * @param seed determines the first weights and all rows
 */
public record Model(int layers, int width, long seed) {
  int pairs() {
    return layers / 2;
  }

  /** Returns the first pair of a stage; for the stage after the last one, the number of pairs. */
  int firstPair(int stage, int stages) {
    return (int) ((long) stage * pairs() / stages);
  }

  /**
   * Describes the layers of a stage.
   *
   * @param stage from 0
   * @param stages the number of stages
   * @return for example {@code 0 to 3}
   */
  public String layersOf(int stage, int stages) {
    return 2 * firstPair(stage, stages) + " to " + (2 * firstPair(stage + 1, stages) - 1);
  }

  /** {@return the number of weights and biases} */
  public long parameters() {
    return (long) layers * width * (width + 1);
  }

  /** Returns a whole layer's first weights, inputs x outputs. Biases start at 0. */
  double[] firstWeights(int layer) {
    SplittableRandom random = new SplittableRandom(seed + ((long) layer + 1 << 40));
    // The outputs of all pairs are added up, so each one starts small.
    double deviation = 1 / Math.sqrt(layer % 2 == 0 ? width : (double) width * pairs());
    double[] weights = new double[width * width];
    for (int i = 0; i < weights.length; i++) {
      weights[i] = deviation * random.nextGaussian();
    }
    return weights;
  }

  /** Computes the inputs of consecutive rows. Every rank gets the same ones by the same numbers. */
  double[] inputs(long firstRow, int rows) {
    double[] inputs = new double[rows * width];
    for (int row = 0; row < rows; row++) {
      SplittableRandom random = new SplittableRandom((seed << 40) + firstRow + row);
      for (int i = 0; i < width; i++) {
        inputs[row * width + i] = random.nextDouble(-1, 1);
      }
    }
    return inputs;
  }

  /** Computes what the model should make of the inputs. */
  double[] targets(double[] inputs) {
    double[] targets = new double[inputs.length];
    for (int row = 0; row < inputs.length; row += width) {
      for (int i = 0; i < width; i++) {
        targets[row + i] = Math.sin(inputs[row + i] + 2 * inputs[row + (i + 1) % width]);
      }
    }
    return targets;
  }
}
