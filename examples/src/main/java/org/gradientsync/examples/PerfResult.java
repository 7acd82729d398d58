package org.gradientsync.examples;

import java.util.List;

/**
 * The measurements at one size.
 *
 * @param rounds the microseconds of one average in each round, means over the ranks
 * @param wrong the number of wrong elements on all ranks, or null without a check
 * @param host null if not measured
 */
record PerfResult(
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

  /** Returns the size of the buffer divided by the time, in GB/s. */
  double algorithmBandwidth() {
    return bytes / microseconds() / 1e3;
  }

  /**
   * Returns the bytes that cross each rank's link in each direction, divided by the time, in GB/s.
   */
  double busBandwidth() {
    return algorithmBandwidth() * 2 * (ranks - 1) / ranks;
  }

  String placement() {
    return inPlace ? "in-place" : "out-of-place";
  }
}
