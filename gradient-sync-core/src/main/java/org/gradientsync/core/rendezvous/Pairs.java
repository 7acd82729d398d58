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

  /**
   * Begins an exchange.
   *
   * @param newDestination the rank to send to, or {@link RankMap#NO_RANK}
   * @param newSource the rank to receive from, or {@link RankMap#NO_RANK}
   */
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
  public void count(int peer, boolean isSent) {
    if (isSent) {
      sent[peer]++;
    } else {
      received[peer]++;
    }
  }

  /**
   * The rounds of all sends to a rank, including the current one. The receiver must reach as many.
   */
  public long roundsSentTo(int peer) {
    return ROUNDS * sent[peer] + round;
  }

  /**
   * The rounds of all receives from a rank, including the current one. The sender must reach as
   * many.
   */
  public long roundsReceivedFrom(int peer) {
    return ROUNDS * received[peer] + round;
  }

  /** The rounds that this rank has reached for a rank that receives from it with a tag. */
  long reachedAsSender(int receiver, int itsTag) {
    return ROUNDS * sent[receiver] + (receiver == destination && tag == itsTag ? round : 0);
  }

  /** The rounds that this rank has reached for a rank that sends to it with a tag. */
  long reachedAsReceiver(int sender, int itsTag) {
    return ROUNDS * received[sender] + (sender == source && tag == itsTag ? round : 0);
  }
}
