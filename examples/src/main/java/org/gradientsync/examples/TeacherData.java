package org.gradientsync.examples;

import java.util.random.RandomGenerator;
import java.util.stream.IntStream;

/** Random inputs, with the outputs of another perceptron of the same widths as targets. */
final class TeacherData implements MlpData {
  private final long seed;
  private final Layer[] layers;
  private final double[][] weights; // inputs x outputs of each layer

  TeacherData(long seed, int[] widths) {
    this.seed = seed;
    layers = HostMlp.layers(widths);
    weights = new double[layers.length][];
    for (int i = 0; i < layers.length; i++) {
      weights[i] = new double[layers[i].count()];
      layers[i].transpose(Weights.random(seed, Purpose.TEACHER, i, layers), weights[i]);
    }
  }

  @Override
  public void rows(long first, int count, double[] inputs, double[] targets) {
    double[][] outputs = new double[layers.length][];
    for (int i = 0; i < layers.length - 1; i++) {
      outputs[i] = new double[count * layers[i].outputs()];
    }
    outputs[layers.length - 1] = targets;
    int width = layers[0].inputs();
    IntStream.range(0, count)
        .parallel()
        .forEach(
            row -> {
              RandomGenerator random = MlpData.random(seed, Purpose.ROW, first + row);
              for (int i = 0; i < width; i++) {
                inputs[row * width + i] = random.nextGaussian();
              }
              double[] x = inputs;
              for (int i = 0; i < layers.length; i++) {
                layers[i].forward(x, row, row + 1, weights[i], outputs[i]);
                x = outputs[i];
              }
            });
  }
}
