package org.gradientsync.core.rendezvous;

import org.gradientsync.core.ranks.RankMap;

/**
 * How many exchanges this rank has had with each other rank. Both ranks of a pair count alike,
 * because neither ends an exchange without the other.
 */
public final class Pairs {
  private static final int ROUNDS = 2; // the calls, and the verdicts on them

  private final long[] sent;
  private final long[] received;
  private int destination = RankMap.NO_RANK;
  private int source = RankMap.NO_RANK;
  private int tag;
  private int round; // 0 between exchanges

  Pairs(int size) {
    sent = new long[size];
    received = new long[size];
  }

  /** Begins an exchange with single other ranks, or {@link RankMap#NO_RANK}. */
  void begin(int newDestination, int newSource, int newTag) {
    destination = newDestination;
    source = newSource;
    tag = newTag;
    round = 0;
  }

  public int tag() {
    return tag;
  }

  public void nextRound() {
    round++;
  }

  /** Ends the rounds of the exchange. */
  public void end() {
    round = 0;
    if (destination != RankMap.NO_RANK) {
      sent[destination]++;
    }
    if (source != RankMap.NO_RANK) {
      received[source]++;
    }
  }

  /** Counts a message of several that were exchanged at the same time. */
  public void count(int peer, boolean sends) {
    exchanges(sends)[peer]++;
  }

  private long[] exchanges(boolean sends) {
    return sends ? sent : received;
  }

  /**
   * The rounds of all sends to a rank, or of all receives from it, including the current one. The
   * other rank must reach as many.
   */
  public long rounds(int peer, boolean sends) {
    return ROUNDS * exchanges(sends)[peer] + round;
  }

  /** The rounds that this rank has reached, as sender or as receiver, for a rank with a tag. */
  long reached(int peer, boolean sends, int itsTag) {
    boolean isCurrent = peer == (sends ? destination : source) && tag == itsTag;
    return ROUNDS * exchanges(sends)[peer] + (isCurrent ? round : 0);
  }
}
