package org.gradientsync.cuda;

import java.util.Arrays;
import java.util.Locale;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.local.LocalRanks;

/**
 * Prints how long 100 averages of 4 KB take one by one and grouped, and one average of as many
 * elements, by turns. Arguments: the device ({@code host} or {@code cuda}) and the number of ranks
 * as threads; without a number, the rank of an mpirun job.
 */
final class TimeGroupedCalls {
  private static final int CALLS = 100;
  private static final int WARM_UP = 1000; // the JIT compiler has done its work then
  private static final int ROUNDS = 200;

  private TimeGroupedCalls() {}

  public static void main(String[] args) {
    if (args.length > 1) {
      LocalRanks.run(
          Integer.parseInt(args[1]), builder -> builder.device(args[0]), TimeGroupedCalls::measure);
    } else {
      try (GradientSync sync = GradientSync.builder().device(args[0]).create()) {
        measure(sync);
      }
    }
  }

  private static void measure(GradientSync sync) {
    DeviceBuffer[] buffers = new DeviceBuffer[CALLS];
    for (int i = 0; i < CALLS; i++) {
      buffers[i] = sync.allocate(DataType.FLOAT32, 1024);
    }
    DeviceBuffer whole = sync.allocate(DataType.FLOAT32, CALLS * 1024);
    Runnable calls = () -> Arrays.stream(buffers).forEach(sync::average);
    double[] single = new double[ROUNDS];
    double[] grouped = new double[ROUNDS];
    double[] large = new double[ROUNDS];
    for (int round = -WARM_UP; round < ROUNDS; round++) {
      double one = microseconds(sync, buffers[0], calls);
      double other = microseconds(sync, buffers[0], () -> sync.grouped(calls));
      double all = microseconds(sync, buffers[0], () -> sync.average(whole));
      if (round >= 0) {
        large[round] = all;
        single[round] = one;
        grouped[round] = other;
      }
    }
    Arrays.sort(single);
    Arrays.sort(grouped);
    Arrays.sort(large);
    if (sync.rank() == 0) {
      System.out.printf(
          Locale.ROOT,
          "%d ranks, %s, reducer %s: 100 averages of 4 KB: one by one %.0f us, grouped %.0f us,"
              + " ratio %.2f; one average of 400 KB %.0f us%n",
          sync.size(),
          sync.device(),
          sync.reducer(),
          single[ROUNDS / 2],
          grouped[ROUNDS / 2],
          grouped[ROUNDS / 2] / single[ROUNDS / 2],
          large[ROUNDS / 2]);
    }
    for (DeviceBuffer buffer : buffers) {
      buffer.close();
    }
    whole.close();
  }

  private static double microseconds(GradientSync sync, DeviceBuffer last, Runnable calls) {
    sync.barrier();
    long begin = System.nanoTime();
    calls.run();
    last.copyTo(new float[1024]); // waits for the device
    return (System.nanoTime() - begin) / 1e3;
  }
}
