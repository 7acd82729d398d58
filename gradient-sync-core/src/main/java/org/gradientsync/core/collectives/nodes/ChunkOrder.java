package org.gradientsync.core.collectives.nodes;

import java.util.Comparator;
import java.util.stream.IntStream;
import org.gradientsync.SumOrder;

/**
 * In which order a node handles the chunks of a running sum ({@link SumPlan}).
 *
 * <p>With {@link SumOrder#RANKS}, all sums begin on the first node, and chunks are handled one
 * after the other. With {@link SumOrder#ANY}, chunk c begins on node c % nodes. Chunks then pass a
 * node in all stages: sums that begin here, sums that come from one node, from two nodes, and so
 * on. A turn has a chunk of each stage. A chunk's next stage is {@value #LAG} turns later, so that
 * the sum is there when it is needed. Results return in the same manner; with RANKS along {@link
 * ResultTrees}. Two nodes order the chunks between them alike, so their messages match.
 */
final class ChunkOrder {
  private static final int LAG = 4;

  /** Chunks on the way of a sum, and of its result, from one node to the next. */
  private static final int CHUNKS_PER_HOP = 4;

  private static final int MIN_WINDOW = 16;

  private final int nodes;
  private final int node;
  private final SumOrder sumOrder;
  private final int[] sums;
  private final int[] results;

  ChunkOrder(int chunks, int nodes, int node, SumOrder sumOrder) {
    this.nodes = nodes;
    this.node = node;
    this.sumOrder = sumOrder;
    sums = sorted(chunks, 1);
    results = sorted(chunks, -1);
  }

  /**
   * The number of chunks from the one that a node handles to the last one that its neighbor may
   * send while it handles the same: the rest of a turn, those that follow, and the last one up to
   * the next stage.
   */
  static int ahead(SumOrder order, int nodes) {
    return order == SumOrder.RANKS ? 1 : (LAG + 1) * nodes + 2;
  }

  /**
   * The number of sums that a node may be ahead of the results. Sums and results share the links of
   * the nodes in the middle. A node that sends its sums as fast as it can would fill the next one's
   * queues, and its own link would be half idle at the end, when only results are left.
   */
  int window() {
    int turns = Math.max(MIN_WINDOW, 2 * CHUNKS_PER_HOP * (nodes - 1));
    return sumOrder == SumOrder.RANKS ? turns : (turns + 2 * LAG * (nodes - 1)) * nodes;
  }

  private int[] sorted(int chunks, int direction) {
    return IntStream.range(0, chunks)
        .boxed()
        .sorted(
            Comparator.comparingInt((Integer chunk) -> turn(chunk, direction))
                .thenComparingInt(chunk -> direction * stage(chunk)))
        .mapToInt(Integer::intValue)
        .toArray();
  }

  private int turn(int chunk, int direction) {
    return sumOrder == SumOrder.RANKS ? chunk : chunk / nodes + direction * LAG * stage(chunk);
  }

  /** The number of nodes whose contributions a chunk's sum has when it gets here. */
  private int stage(int chunk) {
    int first = sumOrder == SumOrder.RANKS ? 0 : chunk % nodes;
    return (node + nodes - first) % nodes;
  }

  int chunks() {
    return sums.length;
  }

  /** Whether a chunk's sum begins on this node. */
  boolean isFirst(int chunk) {
    return stage(chunk) == 0;
  }

  /** Whether a chunk's sum is complete on this node. */
  boolean isLast(int chunk) {
    return stage(chunk) == nodes - 1;
  }

  /** Every so many results come in order, whatever the others do. */
  int lanes() {
    return sumOrder == SumOrder.RANKS ? ResultTrees.COUNT : 1;
  }

  /** The node from which this one gets a chunk's result, or -1 if it is complete here. */
  int resultFrom(int chunk) {
    if (sumOrder == SumOrder.RANKS) {
      return new ResultTrees(nodes, node).parent(chunk);
    }
    return isLast(chunk) ? -1 : (node + 1) % nodes;
  }

  /** The nodes to which this one sends a chunk's result. */
  int[] resultTo(int chunk) {
    if (sumOrder == SumOrder.RANKS) {
      return new ResultTrees(nodes, node).children(chunk);
    }
    return isFirst(chunk) ? new int[0] : new int[] {(node + nodes - 1) % nodes};
  }

  /** The chunk whose sum this node handles at a turn. */
  int sum(int turn) {
    return sums[turn];
  }

  /** The chunk whose result this node handles at a turn. */
  int result(int turn) {
    return results[turn];
  }
}
