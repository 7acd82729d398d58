package org.gradientsync.examples.djl;

import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;
import ai.djl.training.dataset.ArrayDataset;
import java.util.Random;

/** Images like those of MNIST, made here: digits of seven segments, moved and noisy. */
final class Digits {
  static final int SIDE = 28;
  static final int CLASSES = 10;

  private static final float NOISE = 0.2f;

  /**
   * Which segments each digit has: top, upper left and right, middle, lower left and right, bottom.
   */
  private static final String[] SEGMENTS = {
    "1110111", "0010010", "1011101", "1011011", "0111010",
    "1101011", "1101111", "1010010", "1111111", "1111011"
  };

  /** Where each segment begins, and whether it is upright. */
  private static final int[][] PLACES = {
    {0, 0, 0}, {0, 0, 1}, {0, 8, 1}, {8, 0, 0}, {8, 0, 1}, {8, 8, 1}, {16, 0, 0}
  };

  private static final int LENGTH = 9;

  private Digits() {}

  /**
   * Rows of one image each, the same for the same seed, in batches that are not shuffled.
   *
   * @param batch rows of a batch
   */
  static ArrayDataset rows(NDManager manager, int count, int batch, long seed) {
    Random random = new Random(seed);
    float[] images = new float[count * SIDE * SIDE];
    float[] labels = new float[count];
    for (int row = 0; row < count; row++) {
      int digit = random.nextInt(CLASSES);
      labels[row] = digit;
      draw(digit, images, row * SIDE * SIDE, random);
    }
    return new ArrayDataset.Builder()
        .setData(manager.create(images, new Shape(count, 1, SIDE, SIDE)))
        .optLabels(manager.create(labels))
        .setSampling(batch, false)
        .build();
  }

  private static void draw(int digit, float[] images, int offset, Random random) {
    for (int i = 0; i < SIDE * SIDE; i++) {
      images[offset + i] = NOISE * (float) random.nextGaussian();
    }
    int top = 4 + random.nextInt(4);
    int left = 7 + random.nextInt(4);
    for (int segment = 0; segment < PLACES.length; segment++) {
      if (SEGMENTS[digit].charAt(segment) == '1') {
        int[] place = PLACES[segment];
        for (int i = 0; i < LENGTH; i++) {
          int y = top + place[0] + i * place[2];
          int x = left + place[1] + i * (1 - place[2]);
          images[offset + y * SIDE + x] += 1;
        }
      }
    }
  }
}
