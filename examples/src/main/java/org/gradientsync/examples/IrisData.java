package org.gradientsync.examples;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.random.RandomGenerator;

/**
 * Fisher's irises: 150 flowers of three kinds, with four measurements each. Training uses them in
 * random order, over and over; some are held out for testing. The training flowers' means and
 * deviations standardize all measurements. A constant 1 follows the measurements, because layers
 * have no bias.
 */
final class IrisData implements MlpData {
  static final int INPUTS = 5;
  static final int KINDS = 3;
  static final int TRAINING = 120;
  static final int TESTING = 30;

  private static final int MEASUREMENTS = 4;

  private final double[][] flowers = new double[TRAINING + TESTING][];
  private final int[] kinds = new int[TRAINING + TESTING];

  IrisData(long seed) {
    List<String> lines = lines();
    int[] order = order(MlpData.random(seed, Purpose.ORDER, 0));
    for (int i = 0; i < order.length; i++) {
      String[] texts = lines.get(order[i]).split(",");
      flowers[i] = Arrays.stream(texts).mapToDouble(Double::parseDouble).toArray();
      kinds[i] = (int) flowers[i][MEASUREMENTS];
      flowers[i][MEASUREMENTS] = 1;
    }
    standardize();
  }

  private static List<String> lines() {
    try (InputStream in = IrisData.class.getResourceAsStream("iris.csv")) {
      return new BufferedReader(new InputStreamReader(in, StandardCharsets.UTF_8))
          .lines()
          .filter(line -> !line.startsWith("#"))
          .toList();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static int[] order(RandomGenerator random) {
    int[] order = new int[TRAINING + TESTING];
    for (int i = 0; i < order.length; i++) {
      int other = random.nextInt(i + 1);
      order[i] = order[other];
      order[other] = i;
    }
    return order;
  }

  private void standardize() {
    for (int m = 0; m < MEASUREMENTS; m++) {
      int column = m;
      double mean =
          Arrays.stream(flowers, 0, TRAINING).mapToDouble(f -> f[column]).average().orElseThrow();
      double variance =
          Arrays.stream(flowers, 0, TRAINING)
              .mapToDouble(f -> (f[column] - mean) * (f[column] - mean))
              .average()
              .orElseThrow();
      for (double[] flower : flowers) {
        flower[m] = (flower[m] - mean) / Math.sqrt(variance);
      }
    }
  }

  @Override
  public void rows(long first, int count, double[] inputs, double[] targets) {
    Arrays.fill(targets, 0, count * KINDS, 0);
    for (int row = 0; row < count; row++) {
      int flower = (int) ((first + row) % TRAINING);
      System.arraycopy(flowers[flower], 0, inputs, row * INPUTS, INPUTS);
      targets[row * KINDS + kinds[flower]] = 1;
    }
  }

  /**
   * Returns the share of flowers whose largest output is that of their kind.
   *
   * @param weights the weights of each layer, outputs x inputs
   * @param testing whether to use the held-out flowers instead of the training flowers
   * @return a fraction from 0 to 1
   */
  double accuracy(Layer[] layers, double[][] weights, boolean testing) {
    int from = testing ? TRAINING : 0;
    int to = testing ? TRAINING + TESTING : TRAINING;
    int right = 0;
    for (int flower = from; flower < to; flower++) {
      double[] x = flowers[flower];
      for (int i = 0; i < layers.length; i++) {
        double[] byInput = new double[layers[i].count()];
        layers[i].transpose(weights[i], byInput);
        double[] y = new double[layers[i].outputs()];
        layers[i].forward(x, 0, 1, byInput, y);
        x = y;
      }
      right += largest(x) == kinds[flower] ? 1 : 0;
    }
    return (double) right / (to - from);
  }

  private static int largest(double[] values) {
    int largest = 0;
    for (int i = 1; i < values.length; i++) {
      largest = values[i] > values[largest] ? i : largest;
    }
    return largest;
  }
}
