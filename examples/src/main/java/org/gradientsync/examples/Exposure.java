package org.gradientsync.examples;

import java.nio.DoubleBuffer;
import java.util.Map;
import org.gradientsync.GradientSync;
import org.gradientsync.ReduceOp;
import org.gradientsync.Synchronization;

/** Adds up how long the averages of buckets take, and how long the steps wait for them. */
final class Exposure {
  private double duration;
  private double exposed;

  /** Starts observing. */
  void start(GradientSync sync) {
    sync.observe(this::add);
  }

  private void add(Synchronization s) {
    if (s.bucket() >= 0) {
      duration += s.duration();
      exposed += s.exposed();
    }
  }

  /**
   * Adds the means over all ranks and steps to the results. Call it after all averages have been
   * reported. Collective.
   */
  void putInto(Map<String, Object> results, GradientSync sync, long steps) {
    double[] sums = {duration, exposed};
    sync.communicator().allReduce(DoubleBuffer.wrap(sums), ReduceOp.SUM);
    double count = (double) steps * sync.size();
    results.put("averagingMillisecondsPerStep", sums[0] / count);
    results.put("exposedMillisecondsPerStep", sums[1] / count);
    results.put("exposedShare", sums[0] == 0 ? 0 : sums[1] / sums[0]);
  }
}
