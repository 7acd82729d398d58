package org.gradientsync.mpi;

import java.util.Arrays;
import java.util.Locale;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;

/**
 * Times small averages over MPI messages, to compare runs with different {@code mpi.binding}. This
 * is not a test, because times depend on the machine. Run it with {@code
 * script/measure/compare-bindings}.
 */
final class TimeAverages {
  private static final int WARM_UPS = 30_000;
  private static final int ROUNDS = 20_000;

  private TimeAverages() {}

  /** Prints the median and the quartiles on rank 0. Argument: a label for the line. */
  public static void main(String[] args) {
    int count = 1024 / Float.BYTES;
    long[] times = new long[ROUNDS];
    try (GradientSync sync = GradientSync.create();
        DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, count)) {
      for (int round = -WARM_UPS; round < ROUNDS; round++) {
        long start = System.nanoTime();
        sync.average(buffer);
        times[Math.max(0, round)] = System.nanoTime() - start;
      }
      Arrays.sort(times);
      if (sync.rank() == 0) {
        System.out.printf(
            Locale.ROOT,
            "%-7s ranks=%d bytes=1024 reducer=%s average: quartile=%.2f us median=%.2f us quartile=%.2f us%n",
            args[0],
            sync.size(),
            sync.reducer(),
            times[ROUNDS / 4] / 1e3,
            times[ROUNDS / 2] / 1e3,
            times[ROUNDS / 4 * 3] / 1e3);
      }
    }
  }
}
