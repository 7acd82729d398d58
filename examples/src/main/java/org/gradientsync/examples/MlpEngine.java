package org.gradientsync.examples;

import java.util.List;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.Parameter;

/**
 * Computes a training step of a perceptron's layers on one device. Calls only enqueue; loss() and
 * copies wait.
 */
interface MlpEngine extends AutoCloseable {
  /**
   * Returns one matrix per layer, outputs x inputs, row-major, in the order of the forward pass. A
   * layer is a matrix product, then ReLU. No layer has a bias.
   */
  List<Parameter> parameters();

  List<DeviceBuffer> weights();

  /**
   * Takes other buffers for the weights, with the same types and counts, instead of its own, which
   * it frees. Call it before the first pass. The caller keeps them open and closes them.
   */
  void useWeights(List<DeviceBuffer> newWeights);

  /**
   * Stores a batch on the device: rows x widths[0] inputs and rows x widths[last] targets,
   * row-major. Batches are numbered from 0. Loading one again replaces it.
   */
  void load(int batch, double[] inputs, double[] targets);

  /**
   * Runs the forward pass, and computes the loss: the mean over rows and outputs of (output -
   * target)^2.
   */
  void forward(int batch);

  /**
   * Computes one layer's gradient of the last forward pass's loss, times scale. Call it from the
   * last layer down to 0. With accumulate it adds to the gradient, otherwise it overwrites it.
   */
  void backward(int layer, DeviceBuffer gradient, double scale, boolean accumulate);

  /** Computes weights -= rate * gradient. */
  void update(int layer, DeviceBuffer gradient, double rate);

  /**
   * Makes a step of Adam: updates the moments, then weights -= rate * means / (sqrt(squares) *
   * correction + epsilon). Each element gets the same bits wherever it lies. Call it after the
   * backward pass.
   */
  void adam(AdamPart part, double rate, double correction);

  /** Waits for the loss of the last forward pass. */
  double loss();

  @Override
  void close();
}
