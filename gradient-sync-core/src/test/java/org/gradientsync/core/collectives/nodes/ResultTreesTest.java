package org.gradientsync.core.collectives.nodes;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class ResultTreesTest {
  @Test
  void resultsReachAllNodesSoon() {
    for (int nodes = 2; nodes < 70; nodes++) {
      int most = Integer.SIZE - Integer.numberOfLeadingZeros(nodes - 1); // messages on the way
      for (int chunk = 0; chunk < 3; chunk++) {
        assertEquals(-1, new ResultTrees(nodes, nodes - 1).parent(chunk));
        for (int node = 0; node < nodes - 1; node++) {
          int steps = 0;
          for (int at = node; at != nodes - 1; steps++) {
            int child = at;
            at = new ResultTrees(nodes, at).parent(chunk);
            int[] children = new ResultTrees(nodes, at).children(chunk);
            assertTrue(IntStream.of(children).anyMatch(one -> one == child), "nodes=" + nodes);
          }
          assertTrue(steps <= most, "nodes=" + nodes + ", node=" + node + ", steps=" + steps);
        }
      }
    }
  }

  @Test
  void noNodeSendsMoreThanEachResultOnce() {
    for (int nodes = 2; nodes < 70; nodes++) {
      int[] sent = new int[nodes]; // results of two chunks
      for (int node = 0; node < nodes; node++) {
        ResultTrees trees = new ResultTrees(nodes, node);
        sent[node] = trees.children(0).length + trees.children(1).length;
      }
      assertTrue(Arrays.stream(sent).max().orElseThrow() <= 2, "nodes=" + nodes);
      assertEquals(2 * (nodes - 1), Arrays.stream(sent).sum(), "nodes=" + nodes);
    }
  }
}
