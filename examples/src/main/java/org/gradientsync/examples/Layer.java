package org.gradientsync.examples;

import java.util.Arrays;

/**
 * One layer of a perceptron in plain Java: a matrix product, then ReLU. Matrices are row-major
 * arrays. Each element is a sum in a fixed order, so results do not depend on how the rows are
 * divided.
 */
record Layer(int inputs, int outputs) {
  /** Returns the number of weights, a matrix of outputs x inputs. */
  int count() {
    return inputs * outputs;
  }

  /** Transposes the weights to inputs x outputs, as {@link #forward} takes them. */
  void transpose(double[] weights, double[] byInput) {
    for (int o = 0; o < outputs; o++) {
      for (int i = 0; i < inputs; i++) {
        byInput[i * outputs + o] = weights[o * inputs + i];
      }
    }
  }

  /** Computes the outputs for the rows of x from {@code from} to before {@code to}. */
  void forward(double[] x, int from, int to, double[] byInput, double[] y) {
    Arrays.fill(y, from * outputs, to * outputs, 0);
    for (int row = from; row < to; row++) {
      int out = row * outputs;
      for (int i = 0; i < inputs; i++) {
        double factor = x[row * inputs + i];
        int in = i * outputs;
        for (int o = 0; o < outputs; o++) { // contiguous, so that the JIT compiler vectorizes
          y[out + o] += factor * byInput[in + o];
        }
      }
      for (int o = 0; o < outputs; o++) {
        y[out + o] = Math.max(0, y[out + o]);
      }
    }
  }

  /** Clears the slopes where ReLU has slope 0. */
  void mask(double[] y, int rows, double[] slopes) {
    for (int i = 0; i < rows * outputs; i++) {
      if (!(y[i] > 0)) {
        slopes[i] = 0;
      }
    }
  }

  /** Adds the derivatives of the loss with respect to the weights, times scale. */
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

  /** Computes the derivatives of the loss with respect to this layer's inputs. */
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
