package org.gradientsync.core.collectives.nodes;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.gradientsync.SumOrder;
import org.gradientsync.core.collectives.messages.Shards;
import org.gradientsync.core.collectives.nodes.TwoLevelSizes.Way;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class TwoLevelSizesTest {
  /** In any order, of nodes with two carriers each. */
  @ParameterizedTest
  @CsvSource({
    "2, 4,   8192, CALLS",
    "2, 4,   8196, DIRECT_SUMS",
    "2, 4, 229376, DIRECT_SUMS",
    "2, 4, 229380, RUNNING_SUM",
    "2, 5,  28672, CALLS", // a node has three ranks
    "2, 5,  28676, HALVING",
    "3, 6,   8192, CALLS",
    "3, 6,   8196, DIRECT_SUMS",
    "3, 7,  28672, CALLS",
    "16, 32, 16384, CALLS",
    "16, 32, 16388, DIRECT_SUMS",
    "24, 48, 24576, CALLS",
    "24, 48, 28672, CALLS",
    "24, 48, 28676, HALVING",
    "32, 64, 28672, CALLS",
    "8, 16, 58512, DIRECT_SUMS",
    "8, 16, 58516, HALVING",
    "8, 16, 229376, HALVING",
    "8, 16, 229380, RUNNING_SUM",
  })
  void waysInAnyOrder(int nodes, int ranks, long bytes, Way way) {
    int element = Float.BYTES;
    assertEquals(
        way,
        TwoLevelSizes.USUAL.way(SumOrder.ANY, nodes, bytes / element, element, element, ranks, 2));
  }

  /** Of float32, so that no node or slot has more to do than others. */
  @ParameterizedTest
  @CsvSource({
    "15, 4194304, 8, 45", // three a node
    "2, 786432, 8, 6",
    "3, 8388608, 1, 258", // of at most 32 KiB
    "60, 1048576, 8, 32", // of 4 KiB, fewer than nodes
  })
  void chunksOfSumsInAnyOrder(int nodes, long bytes, int shards, int chunks) {
    Shards divided =
        TwoLevelSizes.USUAL.chunks(SumOrder.ANY, nodes, bytes / Float.BYTES, Float.BYTES, shards);
    assertEquals(chunks, divided.chunks());
  }

  @ParameterizedTest
  @CsvSource({"8192, 1", "8196, 2", "24576, 3", "98304, 4", "2097152, 4", "2097156, 8"})
  void columns(long bytes, int columns) {
    Shards divided = TwoLevelSizes.USUAL.columns(bytes / Float.BYTES, Float.BYTES, 1);
    assertEquals(columns, divided.chunks());
  }
}
