package org.gradientsync.core.rendezvous;

/**
 * With whom the leader of a node exchanges how many calls in each round of a {@link
 * LeaderExchange}.
 *
 * @param nodes the number of nodes
 * @param node the leader's node
 */
public record LeaderRounds(int nodes, int node) {
  private static final int HEADER = Long.BYTES; // the payload of each entry

  /** The number of rounds: a message in each direction in each of them. */
  public int count() {
    return Integer.SIZE - Integer.numberOfLeadingZeros(nodes - 1);
  }

  private static int distance(int round) {
    return 1 << round;
  }

  /** The node whose leader is sent the calls of this node and of those that follow it. */
  public int destination(int round) {
    return (node + nodes - distance(round)) % nodes;
  }

  /** The node from which the calls of that node and of those that follow it come. */
  public int source(int round) {
    return (node + distance(round)) % nodes;
  }

  /** The number of nodes whose calls are in a message. */
  public int blocks(int round) {
    return Math.min(distance(round), nodes - distance(round));
  }

  /**
   * The size of a message.
   *
   * @param calls the number of ranks whose calls are in it
   * @param payload what travels with each call, as it is sent; at most {@link #mostPayload}
   */
  static int bytes(int calls, int payload) {
    return HEADER + calls * (CallRecord.BYTES + payload);
  }

  /**
   * The size of a message with contributions that are equally long.
   *
   * @param calls the number of ranks whose calls are in it
   * @param contribution the size of each, or 0
   */
  public static int messageBytes(int calls, int contribution) {
    return bytes(calls, GatheredCalls.sentBytes(contribution));
  }

  /**
   * The maximum size of a contribution.
   *
   * @param ranks the number of ranks of the group
   */
  public static int mostPayload(int ranks) {
    return GatheredCalls.payloadBytes(ranks);
  }
}
