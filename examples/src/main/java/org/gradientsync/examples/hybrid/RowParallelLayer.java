package org.gradientsync.examples.hybrid;

import java.util.Arrays;

/**
 * A layer of which each tensor rank has some inputs, which are the outputs of a {@link
 * ColumnParallelLayer}: it has these rows of the weights, and the whole bias. All ranks get all
 * outputs, so the backward pass needs no communication.
 */
final class RowParallelLayer {
  private final LayerPart part;
  private final TensorSum tensor;

  RowParallelLayer(Model model, int layer, TensorSum tensor) {
    this.tensor = tensor;
    int inputs = model.width() / tensor.size();
    int first = tensor.rank() * inputs * model.width();
    double[] rows =
        Arrays.copyOfRange(model.firstWeights(layer), first, first + inputs * model.width());
    part = new LayerPart("layer" + layer, inputs, model.width(), rows);
  }

  LayerPart part() {
    return part;
  }

  /** Computes the outputs: the sum over the tensor group, and the bias, which is added once. */
  double[] forward(double[] x) {
    double[] y = part.multiply(x);
    tensor.sum(y);
    Matrices.addRow(part.bias().values(), y);
    return y;
  }

  /** Computes the derivatives with respect to this rank's inputs. */
  double[] inputSlopes(double[] slopes) {
    return part.inputSlopes(slopes);
  }
}
