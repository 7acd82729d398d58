package org.gradientsync.examples.hybrid;

/** One rank's part of a layer: weights, a bias, and the sums of their gradients. */
final class LayerPart {
  private final int inputs;
  private final int outputs;
  private final Weights weights;
  private final Weights bias;

  /**
   * @param firstWeights inputs x outputs
   */
  LayerPart(String name, int inputs, int outputs, double[] firstWeights) {
    this.inputs = inputs;
    this.outputs = outputs;
    weights = new Weights(name + ".weights", firstWeights);
    bias = new Weights(name + ".bias", new double[outputs]);
  }

  Weights weights() {
    return weights;
  }

  Weights bias() {
    return bias;
  }

  /** Multiplies the inputs and the weights. */
  double[] multiply(double[] x) {
    return Matrices.product(x, weights.values(), x.length / inputs, inputs, outputs);
  }

  /** Adds the derivatives of the loss with respect to weights and bias. */
  void addGradients(double[] x, double[] slopes) {
    Matrices.addTransposedProduct(
        x, slopes, x.length / inputs, inputs, outputs, weights.gradients());
    Matrices.addSumOfRows(slopes, bias.gradients());
  }

  /** Computes the derivatives of the loss with respect to the inputs. */
  double[] inputSlopes(double[] slopes) {
    double[] transposed = Matrices.transpose(weights.values(), inputs, outputs);
    return Matrices.product(slopes, transposed, slopes.length / outputs, outputs, inputs);
  }
}
