package org.gradientsync.core.collectives.nodes;

import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class HalvingPlanTest {
  @Test
  void whatAllRoundsReceiveFitsBesideTheSums() {
    for (int nodes = 2; nodes < 600; nodes++) {
      for (int node : new int[] {0, 1, nodes / 2, nodes - 1}) {
        for (long column : new long[] {1, 7, 2048, 4096, 8192, 65536}) {
          Blocks blocks = new Blocks(column, nodes, node);
          HalvingRounds rounds = new HalvingRounds(nodes, node);
          long count = column;
          for (int round = 0; round < rounds.count(); round++) {
            count += blocks.length(0, rounds.sent(round));
          }
          long room = HalvingPlan.scratchCount(column, nodes);
          assertTrue(count <= room, "nodes=" + nodes + ", node=" + node + ", column=" + column);
        }
      }
    }
  }
}
