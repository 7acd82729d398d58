package org.gradientsync.core.rendezvous;

/**
 * With whom the leader of a node exchanges how many calls in each round of a {@link
 * LeaderExchange}. If the number of nodes is a power of two, nodes exchange in pairs what they have
 * (recursive doubling), so each has an aligned block of nodes. Otherwise each passes what it has to
 * a node before it (J. Bruck et al.: Efficient Algorithms for All-to-All Communications in
 * Multiport Message-Passing Systems. IEEE TPDS 8(11), 1997).
 */
public record LeaderRounds(int nodes, int node) {
  private static final int HEADER = Long.BYTES; // the payload of each entry, and the form

  /** The number of rounds. In each one a node sends a message and receives one. */
  public int count() {
    return Integer.SIZE - Integer.numberOfLeadingZeros(nodes - 1);
  }

  /** The number of nodes from {@link #first} on whose sum is in a message. */
  static int distance(int round) {
    return 1 << round;
  }

  private boolean isPaired() {
    return Integer.bitCount(nodes) == 1;
  }

  public int destination(int round) {
    int distance = distance(round);
    return isPaired() ? node ^ distance : (node + nodes - distance) % nodes;
  }

  public int source(int round) {
    return isPaired() ? node ^ distance(round) : (node + distance(round)) % nodes;
  }

  /** The first node whose calls this leader sends; others follow it, the first after the last. */
  public int first(int round) {
    return isPaired() ? node & -distance(round) : node;
  }

  public int blocks(int round) {
    return Math.min(distance(round), nodes - distance(round));
  }

  /** The same for the leader from whom this one receives. */
  LeaderRounds ofSource(int round) {
    return new LeaderRounds(nodes, source(round));
  }

  /** The size of a message with different calls, each with a payload. */
  static int bytes(int calls, int payload) {
    return HEADER + calls * (CallRecord.BYTES + payload);
  }

  /** The size of a message with one call, and with contributions or sums of one size. */
  public static int messageBytes(int parts, int part) {
    return HEADER + CallRecord.BYTES + parts * GatheredCalls.sentBytes(part);
  }
}
