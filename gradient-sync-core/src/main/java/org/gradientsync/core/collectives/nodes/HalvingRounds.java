package org.gradientsync.core.collectives.nodes;

/**
 * With which nodes a node exchanges which blocks, so that each element is reduced on one node and
 * gathered by all, in ceil(log2 M) rounds each and with M-1 blocks each on M nodes, whatever M is.
 * Each node owns a block. The blocks are numbered from its own on: block i of a node is owned by
 * the i-th node after it.
 *
 * <p>In a round of the reduction, a node that still has the sums of s blocks sends the upper half
 * of them, and adds what it receives to the lower half. To gather, it does the same backwards. (J.
 * L. Traff: Optimal, Non-pipelined Reduce-scatter and Allreduce Algorithms. arXiv:2410.14234,
 * 2024.)
 */
record HalvingRounds(int nodes, int node) {
  /** The number of rounds of the reduction, and as many to gather. */
  int count() {
    return count(nodes);
  }

  /** The same for a number of nodes. */
  static int count(int nodes) {
    return Integer.SIZE - Integer.numberOfLeadingZeros(nodes - 1);
  }

  /** The number of blocks whose sums a node has at the beginning of a round. */
  int size(int round) {
    return (nodes - 1 >> round) + 1;
  }

  /** The number of blocks whose sums a node has after a round. */
  int keep(int round) {
    return size(round + 1);
  }

  /** The number of blocks in a message. */
  int sent(int round) {
    return size(round) - keep(round);
  }

  /** The node that owns the upper half: to send sums to, and to receive results from. */
  int above(int round) {
    return (node + keep(round)) % nodes;
  }

  /** The node to receive sums from, and to send results to. */
  int below(int round) {
    return (node + nodes - keep(round)) % nodes;
  }
}
