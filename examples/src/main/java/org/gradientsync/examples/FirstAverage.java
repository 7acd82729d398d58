package org.gradientsync.examples;

import java.util.Arrays;
import org.gradientsync.GradientSync;
import org.gradientsync.local.LocalRanks;

/**
 * Averages one array. It needs gradient-sync-core alone, so that {@code java FirstAverage.java}
 * starts it with nothing else built.
 */
public final class FirstAverage {
  private static final int COUNT = 10_000;

  private FirstAverage() {}

  /**
   * Runs one rank, or several as threads.
   *
   * @param args the number of threads, or nothing
   */
  public static void main(String[] args) {
    if (args.length > 0) {
      LocalRanks.run(Integer.parseInt(args[0]), FirstAverage::average);
    } else {
      try (GradientSync sync = GradientSync.create()) {
        average(sync);
      }
    }
  }

  private static void average(GradientSync sync) {
    float[] gradient = new float[COUNT];
    Arrays.fill(gradient, sync.rank());
    sync.average(gradient);
    float expected = (sync.size() - 1) / 2f;
    for (float value : gradient) {
      if (value != expected) {
        throw new IllegalStateException(
            "wrong average: " + value + ", expected=" + expected + ", rank=" + sync.rank());
      }
    }
    System.out.print(
        "rank %d of %d: average %s, launcher %s, reducer %s%n"
            .formatted(sync.rank(), sync.size(), expected, sync.launcher(), sync.reducer()));
  }
}
