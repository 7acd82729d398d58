package org.gradientsync.core.collectives.nodes;

/**
 * Where a node's blocks ({@link HalvingRounds}) lie in a row of elements. The row begins with the
 * block that the first node owns; sums are kept in the order of a node's own numbers.
 *
 * @param length the number of elements
 * @param nodes the number of blocks
 */
record Blocks(long length, int nodes, int node) {
  private long begin(int owner) {
    return Math.min(length, owner * ((length + nodes - 1) / nodes));
  }

  /** The elements of the blocks before one, in the order of this node. */
  long before(int block) {
    int owner = node + block;
    return owner <= nodes
        ? begin(owner) - begin(node)
        : length - begin(node) + begin(owner - nodes);
  }

  /** The number of elements of some blocks. */
  long length(int from, int to) {
    return before(to) - before(from);
  }

  /** The first block that wraps around: from it on, blocks lie at the beginning of the row. */
  private int end() {
    return nodes - node;
  }

  /** The last of some blocks that lie in one piece. */
  int pieceEnd(int from, int to) {
    return from < end() ? Math.min(to, end()) : to;
  }

  /** The first element of a block in the row. */
  long first(int block) {
    return begin((node + block) % nodes);
  }
}
