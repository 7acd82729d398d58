package org.gradientsync.core.collectives.nodes;

import java.util.stream.IntStream;

/**
 * The ways of what the last node has to all others, which are the results of a sum in rank order,
 * or a broadcast: two binary trees, each for every other chunk. A node with children in one tree
 * has none in the other, so each node sends no more than everything once, and has each chunk after
 * about log M messages.
 *
 * <p>P. Sanders, J. Speck, J. L. Traff: "Two-tree algorithms for full bandwidth broadcast,
 * reduction and scan", Parallel Computing 35(12), 2009.
 */
record ResultTrees(int nodes, int node) {
  static final int COUNT = 2;

  /** The node from which this one gets the result of a chunk, or -1 on the last node. */
  int parent(int chunk) {
    if (node == last()) {
      return -1;
    }
    int place = place(node, chunk);
    return place == 0 ? last() : place((place - 1) / 2, chunk);
  }

  /** The nodes to which this one sends it. */
  int[] children(int chunk) {
    int place = place(node, chunk);
    IntStream places =
        node == last() ? IntStream.of(0) : IntStream.of(2 * place + 1, 2 * place + 2);
    return places.filter(child -> child < last()).map(child -> place(child, chunk)).toArray();
  }

  private int last() {
    return nodes - 1;
  }

  /** A node's place in the tree in level order, and the node with a place: the other tree's. */
  private int place(int number, int chunk) {
    return chunk % COUNT == 0 ? number : last() - 1 - number;
  }
}
