package org.gradientsync.core.collectives.nodes;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.gradientsync.SumOrder;
import org.gradientsync.core.collectives.nodes.TwoLevelSizes.Way;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class TwoLevelSizesTest {
  /** In any order, of nodes with two carriers each. */
  @ParameterizedTest
  @CsvSource({
    "2, 4,   8192, CALLS",
    "2, 4,   8196, DIRECT_SUMS",
    "2, 4, 131072, DIRECT_SUMS",
    "2, 4, 131076, RUNNING_SUM",
    "2, 5,  16384, CALLS", // a node has three ranks
    "2, 5,  16388, HALVING",
    "3, 6,   8192, CALLS",
    "3, 6,   8196, DIRECT_SUMS",
    "3, 7,  16384, CALLS",
    "8, 16, 16384, CALLS",
    "8, 16, 16388, DIRECT_SUMS",
    "24, 48,  8192, CALLS",
    "24, 48,  8196, DIRECT_SUMS",
    "24, 48, 12288, HALVING",
    "32, 64, 16384, CALLS",
    "8, 16, 42908, DIRECT_SUMS",
    "8, 16, 42912, HALVING",
  })
  void waysInAnyOrder(int nodes, int ranks, long bytes, Way way) {
    int element = Float.BYTES;
    assertEquals(
        way,
        TwoLevelSizes.USUAL.way(SumOrder.ANY, nodes, bytes / element, element, element, ranks, 2));
  }
}
