package org.gradientsync.examples;

import java.util.List;

/**
 * What was measured of one size.
 *
 * @param rounds microseconds for one average, of each round; means over the ranks
 * @param wrong elements with wrong bits, on all ranks together; null if nobody looked
 * @param host null if nobody asked
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
  /** Of the median round. */
  double microseconds() {
    return rounds.stream().sorted().toList().get(rounds.size() / 2);
  }

  /** The size of the buffer by the time, in GB/s. */
  double algorithmBandwidth() {
    return bytes / microseconds() / 1e3;
  }

  /** What has to cross each rank's link in each direction, by the time, in GB/s. */
  double busBandwidth() {
    return algorithmBandwidth() * 2 * (ranks - 1) / ranks;
  }

  String placement() {
    return inPlace ? "in-place" : "out-of-place";
  }
}
