package org.gradientsync.examples;

import java.util.random.RandomGenerator;
import java.util.stream.IntStream;

/** Meaningless inputs and targets that are fast to generate, for timing. */
record RandomData(long seed, int inputWidth, int targetWidth) implements MlpData {
  @Override
  public void rows(long first, int count, double[] inputs, double[] targets) {
    IntStream.range(0, count)
        .parallel()
        .forEach(
            row -> {
              RandomGenerator random = MlpData.random(seed, Purpose.ROW, first + row);
              for (int i = 0; i < inputWidth; i++) {
                inputs[row * inputWidth + i] = random.nextGaussian();
              }
              for (int i = 0; i < targetWidth; i++) {
                targets[row * targetWidth + i] = random.nextDouble();
              }
            });
  }
}
