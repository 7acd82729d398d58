package org.gradientsync.core.rendezvous;

import java.util.stream.IntStream;

/**
 * With whom the leader of a node exchanges the calls that it has in each round of a {@link
 * LeaderExchange}. The nodes form groups: as many as the largest power of two that is not above
 * their number, so the first groups have two nodes and the others one.
 *
 * <p>The first nodes of groups exchange in pairs what they have (recursive doubling), so each has
 * that of an aligned block of groups. The second node of a group sends its own calls in the first
 * round to both nodes of a pair, and receives those of all nodes in the last round, a half from
 * each. So there are as many rounds as for the power of two.
 */
public record LeaderRounds(int nodes, int node) {
  private static final int HEADER = Long.BYTES; // the payload of each entry, and the form

  /** The number of rounds. */
  public int count() {
    return count(nodes);
  }

  /** The same for a number of nodes. */
  public static int count(int nodes) {
    return Integer.SIZE - 1 - Integer.numberOfLeadingZeros(nodes);
  }

  /** The number of groups that have a second node. */
  private int seconds() {
    return nodes - (1 << count());
  }

  private int group() {
    return node < 2 * seconds() ? node / 2 : node - seconds();
  }

  /** The first node of a group. */
  private static int first(int group, int seconds) {
    return group + Math.min(group, seconds);
  }

  private boolean isSecond() {
    return node < 2 * seconds() && node % 2 == 1;
  }

  /** The nodes to whose leaders this one sends a message in a round: all get the same. */
  public int[] destinations(int round) {
    return peers(round, round == 0, round == count() - 1);
  }

  /** The nodes from whose leaders this one receives a message in a round. */
  public int[] sources(int round) {
    return peers(round, round == count() - 1, round == 0);
  }

  private int[] peers(int round, boolean ofSecond, boolean withSeconds) {
    int seconds = seconds();
    int group = group();
    int other = group ^ 1 << round;
    if (isSecond()) {
      return ofSecond ? new int[] {first(group, seconds), first(other, seconds)} : new int[0];
    }
    IntStream beside =
        IntStream.of(group, other)
            .filter(each -> withSeconds && each < seconds)
            .map(each -> first(each, seconds) + 1);
    return IntStream.concat(IntStream.of(first(other, seconds)), beside).toArray();
  }

  /** The first node whose calls this leader sends. Others follow it. */
  public int first(int round) {
    return round == 0 || isSecond() ? node : first(group() & -(1 << round), seconds());
  }

  /** The number of nodes whose calls this leader sends. */
  public int blocks(int round) {
    int end = (group() & -(1 << round)) + (1 << round);
    return round == 0 || isSecond() ? 1 : first(end, seconds()) - first(round);
  }

  /** The same for the leader of another node. */
  LeaderRounds of(int other) {
    return new LeaderRounds(nodes, other);
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
