package org.gradientsync.tools.perf;

import java.util.List;

/**
 * The measurements at one size.
 *
 * @param bytes the size of the larger buffer
 * @param count the elements of a part, where the larger buffer has several
 * @param rounds the microseconds of one call in each round, means over the ranks
 * @param wrong the number of wrong elements on all ranks, or null without a check
 * @param host null if not measured
 */
record PerfResult(
    PerfCollective collective,
    String reducer,
    boolean inPlace,
    long bytes,
    long count,
    int ranks,
    List<Double> rounds,
    Long wrong,
    HostCost host) {
  /** Returns the time of the median round. */
  double microseconds() {
    return rounds.stream().sorted().toList().get(rounds.size() / 2);
  }

  /** Returns the size divided by the time, in GB/s. */
  double algorithmBandwidth() {
    return bytes / microseconds() / 1e3;
  }

  /**
   * Returns the bytes that cross the busiest link in one direction, divided by the time, in GB/s.
   */
  double busBandwidth() {
    return algorithmBandwidth() * collective.busFactor(ranks);
  }

  String placement() {
    return inPlace ? "in-place" : "out-of-place";
  }
}
