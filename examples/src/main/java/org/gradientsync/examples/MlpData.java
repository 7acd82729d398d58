package org.gradientsync.examples;

import java.util.SplittableRandom;
import java.util.random.RandomGenerator;

/**
 * Rows to learn from. Row numbers count over all ranks, so together the ranks of a step see the
 * same rows as a single rank with all of them.
 */
interface MlpData {
  /** The uses of random numbers. Each has its own streams. */
  enum Purpose {
    START,
    TEACHER,
    ROW,
    ORDER
  }

  /**
   * Fills arrays with rows, row by row.
   *
   * @param first the number of the first row, from 0; there are infinitely many rows
   * @param count the number of rows
   */
  void rows(long first, int count, double[] inputs, double[] targets);

  /** Returns random numbers that depend only on the arguments. */
  static RandomGenerator random(long seed, Purpose purpose, long number) {
    SplittableRandom root = new SplittableRandom(seed);
    long start = 0;
    for (int i = 0; i <= purpose.ordinal(); i++) {
      start = root.nextLong();
    }
    // Consecutive seeds could give the same stream, shifted by a few numbers. Hashed seeds do not.
    return new SplittableRandom(new SplittableRandom(start + number).nextLong());
  }
}
