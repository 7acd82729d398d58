package org.gradientsync.examples.djl;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;
import java.util.SplittableRandom;

/** Points in the plane, in arms of a spiral; which arm is to be learned. */
final class Spiral {
  static final int FEATURES = 2;
  static final int ARMS = 3;

  private static final double TURN = 4;
  private static final double NOISE = 0.1;

  private final long seed;

  Spiral(long seed) {
    this.seed = seed;
  }

  /** Points, and the arm of each. */
  record Rows(NDArray points, NDArray arms) {}

  /**
   * Some rows of the data. A row depends on the seed and its own number only, so it does not matter
   * which rank makes it.
   *
   * @param first the number of the first row, over all ranks
   */
  Rows rows(NDManager manager, long first, int count) {
    float[] points = new float[count * FEATURES];
    long[] arms = new long[count];
    for (int i = 0; i < count; i++) {
      // Seeds that are counted up would make rows alike; the first draw has mixed them.
      long mixed = new SplittableRandom(seed ^ Long.reverse(first + i)).nextLong();
      SplittableRandom random = new SplittableRandom(mixed);
      arms[i] = random.nextInt(ARMS);
      double radius = random.nextDouble();
      double angle = 2 * Math.PI * arms[i] / ARMS + TURN * radius + NOISE * random.nextGaussian();
      points[FEATURES * i] = (float) (radius * Math.cos(angle));
      points[FEATURES * i + 1] = (float) (radius * Math.sin(angle));
    }
    return new Rows(manager.create(points, new Shape(count, FEATURES)), manager.create(arms));
  }
}
