package org.gradientsync.internal.matching;

import org.gradientsync.internal.ranks.RankMap;

/**
 * How far a rank has come in its exchanges with each other rank. Both sides of a pair count alike:
 * neither ends an exchange without the other's word.
 */
public final class Pairs {
  private static final int ROUNDS = 2; // what either asks for, and whether it fits

  private final long[] sent;
  private final long[] received;
  private int destination = RankMap.NO_RANK;
  private int source = RankMap.NO_RANK;
  private int tag;
  private int round; // 0 if none is under way

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

  /** Begins the next round of the exchange. */
  public void nextRound() {
    round++;
  }

  /** The rounds of the exchange are over. */
  public void end() {
    round = 0;
    if (destination != RankMap.NO_RANK) {
      sent[destination]++;
    }
    if (source != RankMap.NO_RANK) {
      received[source]++;
    }
  }

  /** The rounds, all exchanges counted, that a send has begun; its receiver must reach as many. */
  public long roundsSentTo(int peer) {
    return ROUNDS * sent[peer] + round;
  }

  /** Likewise of a receive. */
  public long roundsReceivedFrom(int peer) {
    return ROUNDS * received[peer] + round;
  }

  /** The rounds that this rank has reached for one that receives from it with a tag. */
  long reachedAsSender(int receiver, int itsTag) {
    return ROUNDS * sent[receiver] + (receiver == destination && tag == itsTag ? round : 0);
  }

  /** The rounds that this rank has reached for one that sends to it with a tag. */
  long reachedAsReceiver(int sender, int itsTag) {
    return ROUNDS * received[sender] + (sender == source && tag == itsTag ? round : 0);
  }
}
