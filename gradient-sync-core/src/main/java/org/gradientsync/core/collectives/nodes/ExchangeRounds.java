package org.gradientsync.core.collectives.nodes;

import java.util.stream.IntStream;

/**
 * With which nodes a node exchanges contributions, so that the owner of each block gets those of
 * all nodes. Block d of a node is for the d-th node after it. In round x, a block moves on by the
 * x-th digit of d times the base's power, in a message with all blocks that have the same digit. So
 * base 2 takes log2 M messages, in each of which half of all blocks move, and base M takes M-1
 * messages straight to the owners. (J. Bruck et al.: Efficient Algorithms for All-to-All
 * Communications in Multiport Message-Passing Systems. IEEE TPDS 8(11), 1997.)
 *
 * @param base 2 or more
 */
record ExchangeRounds(int nodes, int base) {
  /** The number of rounds. */
  int count() {
    int count = 0;
    for (int power = 1; power < nodes; power *= base) {
      count++;
    }
    return count;
  }

  /** How far a block with digit 1 moves in a round. */
  int power(int round) {
    int power = 1;
    for (int i = 0; i < round; i++) {
      power *= base;
    }
    return power;
  }

  /** The number of messages in a round; message i has the blocks whose digit is i + 1. */
  int messages(int round) {
    return Math.min(base - 1, (nodes - 1) / power(round));
  }

  /** How far the blocks in a message move. */
  int distance(int round, int message) {
    return (message + 1) * power(round);
  }

  /** The blocks in a message. */
  int[] blocks(int round, int message) {
    int power = power(round);
    return IntStream.range(0, nodes).filter(block -> block / power % base == message + 1).toArray();
  }

  /** The node whose contributions a block has that has come to a node before a round. */
  int origin(int node, int round, int block) {
    return Math.floorMod(node - block % power(round), nodes);
  }

  /** The node that owns a block that has come to a node before a round. */
  int owner(int node, int round, int block) {
    return (node + block - block % power(round)) % nodes;
  }
}
