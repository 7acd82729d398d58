package org.gradientsync.examples;

import java.util.SplittableRandom;
import java.util.random.RandomGenerator;

/**
 * Rows to learn from. A row has a number that counts over all ranks, so ranks that share a step see
 * together what one rank with all of their rows would see.
 */
interface MlpData {
  /** What random numbers are for; each purpose has streams of its own. */
  enum Purpose {
    START,
    TEACHER,
    ROW,
    ORDER
  }

  /**
   * Fills arrays with rows, row by row.
   *
   * @param first the number of the first row, from 0; there is no last one
   * @param count the number of rows
   */
  void rows(long first, int count, double[] inputs, double[] targets);

  /** Random numbers that depend on nothing else than these three. */
  static RandomGenerator random(long seed, Purpose purpose, long number) {
    SplittableRandom root = new SplittableRandom(seed);
    long start = 0;
    for (int i = 0; i <= purpose.ordinal(); i++) {
      start = root.nextLong();
    }
    // Seeds that are simply counted up could be one stream, a few numbers shifted; hashed ones not.
    return new SplittableRandom(new SplittableRandom(start + number).nextLong());
  }
}
