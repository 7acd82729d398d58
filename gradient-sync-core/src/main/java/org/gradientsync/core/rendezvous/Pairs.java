package org.gradientsync.core.rendezvous;

import java.util.BitSet;
import org.gradientsync.core.ranks.RankMap;

/**
 * How many exchanges this rank has had with each other rank. Both ranks of a pair count alike,
 * because neither ends an exchange without the other.
 */
public final class Pairs {
  private static final int ROUNDS = 2; // the calls, and the verdicts on them

  private final long[] sent;
  private final long[] received;
  private final BitSet destinations;
  private final BitSet sources;
  private int tag;
  private int round; // 0 between exchanges

  Pairs(int size) {
    sent = new long[size];
    received = new long[size];
    destinations = new BitSet(size);
    sources = new BitSet(size);
  }

  /** Begins an exchange with single other ranks, or {@link RankMap#NO_RANK}. */
  void begin(int newDestination, int newSource, int newTag) {
    destinations.clear();
    sources.clear();
    add(newDestination, true);
    add(newSource, false);
    tag = newTag;
    round = 0;
  }

  /**
   * Adds a rank to an exchange with several others at the same time, or {@link RankMap#NO_RANK}.
   */
  public void add(int peer, boolean sends) {
    if (peer != RankMap.NO_RANK) {
      current(sends).set(peer);
    }
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
    count(destinations, sent);
    count(sources, received);
  }

  private static void count(BitSet current, long[] exchanges) {
    for (int peer = current.nextSetBit(0); peer >= 0; peer = current.nextSetBit(peer + 1)) {
      exchanges[peer]++;
    }
  }

  private BitSet current(boolean sends) {
    return sends ? destinations : sources;
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
    boolean isCurrent = current(sends).get(peer) && tag == itsTag;
    return ROUNDS * exchanges(sends)[peer] + (isCurrent ? round : 0);
  }
}
