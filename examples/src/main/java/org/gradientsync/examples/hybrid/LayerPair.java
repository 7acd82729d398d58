package org.gradientsync.examples.hybrid;

import java.util.List;
import java.util.function.IntConsumer;

/**
 * A column-parallel and a row-parallel layer, with one sum over the tensor group in each pass. The
 * pair adds its outputs to its inputs.
 */
final class LayerPair {
  /**
   * What the backward pass needs of the forward pass.
   *
   * @param input of the first layer, the same on all tensor ranks
   * @param hidden the input of the second layer, this rank's part
   */
  record Activations(double[] input, double[] hidden) {}

  private static final int WEIGHTS = 4;

  private final ColumnParallelLayer first;
  private final RowParallelLayer second;

  LayerPair(Model model, int pair, TensorSum tensor) {
    first = new ColumnParallelLayer(model, 2 * pair, tensor);
    second = new RowParallelLayer(model, 2 * pair + 1, tensor);
  }

  /** Returns the weights in the order of the forward pass. */
  List<Weights> weights() {
    return List.of(
        first.part().weights(), first.part().bias(), second.part().weights(), second.part().bias());
  }

  /** Returns the weights that are the same on all tensor ranks. */
  Weights replicated() {
    return second.part().bias();
  }

  Activations activations(double[] input) {
    double[] hidden = first.forward(input);
    for (int i = 0; i < hidden.length; i++) {
      hidden[i] = Math.tanh(hidden[i]);
    }
    return new Activations(input, hidden);
  }

  double[] output(Activations activations) {
    double[] output = second.forward(activations.hidden());
    Matrices.add(activations.input(), output);
    return output;
  }

  /**
   * Adds the gradients of all weights.
   *
   * @param slopes the derivatives of the loss with respect to the output
   * @param added called with the index of each of the {@link #weights} as soon as its gradient has
   *     been added
   * @return the derivatives with respect to the input
   */
  double[] backward(Activations activations, double[] slopes, IntConsumer added) {
    second.part().addGradients(activations.hidden(), slopes);
    added.accept(WEIGHTS - 1);
    added.accept(WEIGHTS - 2);
    double[] hiddenSlopes = second.inputSlopes(slopes);
    for (int i = 0; i < hiddenSlopes.length; i++) {
      double hidden = activations.hidden()[i];
      hiddenSlopes[i] *= 1 - hidden * hidden; // the derivative of tanh
    }
    first.part().addGradients(activations.input(), hiddenSlopes);
    added.accept(WEIGHTS - 3);
    added.accept(WEIGHTS - 4);
    double[] inputSlopes = first.inputSlopes(hiddenSlopes);
    Matrices.add(slopes, inputSlopes);
    return inputSlopes;
  }
}
