package org.gradientsync.examples.hybrid;

/**
 * A layer of which each tensor rank computes some outputs: it has these columns of the weights and
 * this part of the bias. All ranks have all inputs, so the forward pass needs no communication.
 */
final class ColumnParallelLayer {
  private final LayerPart part;
  private final TensorSum tensor;

  ColumnParallelLayer(Model model, int layer, TensorSum tensor) {
    this.tensor = tensor;
    int outputs = model.width() / tensor.size();
    double[] columns =
        Matrices.columns(
            model.firstWeights(layer), model.width(), tensor.rank() * outputs, outputs);
    part = new LayerPart("layer" + layer, model.width(), outputs, columns);
  }

  LayerPart part() {
    return part;
  }

  /** Computes this rank's outputs. */
  double[] forward(double[] x) {
    double[] y = part.multiply(x);
    Matrices.addRow(part.bias().values(), y);
    return y;
  }

  /**
   * Computes the derivatives with respect to the inputs. Each rank knows how the loss depends on
   * the inputs through its own outputs; the sum over the tensor group is the whole derivative.
   */
  double[] inputSlopes(double[] slopes) {
    double[] inputSlopes = part.inputSlopes(slopes);
    tensor.sum(inputSlopes);
    return inputSlopes;
  }
}
