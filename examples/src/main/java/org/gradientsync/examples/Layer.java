package org.gradientsync.examples;

import java.util.Arrays;

/**
 * One layer of a perceptron in plain Java: a matrix product, then ReLU. Matrices lie row by row in
 * arrays. Each element is a sum in a fixed order, so results do not depend on how rows are divided.
 */
record Layer(int inputs, int outputs) {
  /** The number of weights: a matrix of outputs x inputs. */
  int count() {
    return inputs * outputs;
  }

  /** The weights in the order that {@link #forward} takes: inputs x outputs. */
  void transpose(double[] weights, double[] byInput) {
    for (int o = 0; o < outputs; o++) {
      for (int i = 0; i < inputs; i++) {
        byInput[i * outputs + o] = weights[o * inputs + i];
      }
    }
  }

  /** What comes out for rows of x, from one row to before another. */
  void forward(double[] x, int from, int to, double[] byInput, double[] y) {
    Arrays.fill(y, from * outputs, to * outputs, 0);
    for (int row = from; row < to; row++) {
      int out = row * outputs;
      for (int i = 0; i < inputs; i++) {
        double factor = x[row * inputs + i];
        int in = i * outputs;
        for (int o = 0; o < outputs; o++) { // along memory, which the JIT compiler vectorizes
          y[out + o] += factor * byInput[in + o];
        }
      }
      for (int o = 0; o < outputs; o++) {
        y[out + o] = Math.max(0, y[out + o]);
      }
    }
  }

  /** Leaves of the slopes only those at which ReLU has a slope. */
  void mask(double[] y, int rows, double[] slopes) {
    for (int i = 0; i < rows * outputs; i++) {
      if (!(y[i] > 0)) {
        slopes[i] = 0;
      }
    }
  }

  /** Adds the slopes of the loss by the weights, times scale. */
  void addGradient(double[] slopes, double[] x, int rows, double scale, double[] gradient) {
    for (int row = 0; row < rows; row++) {
      for (int o = 0; o < outputs; o++) {
        double factor = scale * slopes[row * outputs + o];
        for (int i = 0; i < inputs; i++) {
          gradient[o * inputs + i] += factor * x[row * inputs + i];
        }
      }
    }
  }

  /** The slopes of the loss by this layer's inputs. */
  void backward(double[] slopes, double[] weights, int rows, double[] inputSlopes) {
    Arrays.fill(inputSlopes, 0, rows * inputs, 0);
    for (int row = 0; row < rows; row++) {
      for (int o = 0; o < outputs; o++) {
        double factor = slopes[row * outputs + o];
        for (int i = 0; i < inputs; i++) {
          inputSlopes[row * inputs + i] += factor * weights[o * inputs + i];
        }
      }
    }
  }
}
