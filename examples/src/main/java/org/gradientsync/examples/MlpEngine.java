package org.gradientsync.examples;

import java.util.List;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.Parameter;

/**
 * A perceptron's layers on one device: what a training step computes. Calls enqueue; only loss()
 * and copies wait.
 */
interface MlpEngine extends AutoCloseable {
  /**
   * One matrix per layer, outputs x inputs, row by row, in the order of the forward pass. Layer =
   * matrix product, then ReLU (on every layer; no bias).
   */
  List<Parameter> parameters();

  List<DeviceBuffer> weights();

  /**
   * Keeps a batch on the device: rows x widths[0] inputs and rows x widths[last] targets, row by
   * row. Batches are numbered from 0; loading one again replaces it.
   */
  void load(int batch, double[] inputs, double[] targets);

  /** Forward pass and loss: the mean over rows and outputs of (output - target)^2. */
  void forward(int batch);

  /**
   * The gradient of the loss of the last forward times scale, for one layer; called from the last
   * layer down to 0. Adds to what is in gradient if accumulate, else overwrites it.
   */
  void backward(int layer, DeviceBuffer gradient, double scale, boolean accumulate);

  /** weights -= rate * gradient. */
  void update(int layer, DeviceBuffer gradient, double rate);

  /** Waits for the last forward's loss. */
  double loss();

  @Override
  void close();
}
