package org.gradientsync.core.rendezvous;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.function.BiPredicate;
import org.gradientsync.GradientSyncException;
import org.gradientsync.core.ranks.GroupTransport;
import org.gradientsync.core.ranks.Liveness;
import org.gradientsync.core.ranks.RankMap;
import org.gradientsync.spi.Message;
import org.gradientsync.spi.Resources;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Which calls the ranks of a group have reached: collectives, in which all ranks meet, and
 * exchanges between two ranks. The caller holds the group's lock unless a method states otherwise.
 */
public final class Arrivals implements AutoCloseable {
  private static final int ROUNDS = 2; // of an exchange
  private static final Logger log = LoggerFactory.getLogger(Arrivals.class);

  private final GroupTransport transport;
  private final RankMap ranks;
  private final Calls calls;
  private final ArrivalNotices notices;
  private Rendezvous rendezvous;

  // The exchanges that this rank has had with each other one. Both ranks of a pair count alike,
  // because neither ends an exchange without the other.
  private final long[] sent;
  private final long[] received;
  private boolean pair; // whether the last call is an exchange; to and from these ranks:
  private final BitSet destinations = new BitSet();
  private final BitSet sources = new BitSet();
  private int tag;
  private int round; // 0 between exchanges

  public Arrivals(GroupTransport transport, Calls calls, Liveness liveness) {
    this.transport = transport;
    this.ranks = transport.ranks();
    this.calls = calls;
    sent = new long[ranks.size()];
    received = new long[ranks.size()];
    notices = new ArrivalNotices(transport, liveness);
    rendezvous = MessageRendezvous.withoutSharedMemory(transport, notices, false);
  }

  public ArrivalNotices notices() {
    return notices;
  }

  public Rendezvous beginRendezvous() {
    pair = false;
    return rendezvous;
  }

  public Rendezvous rendezvous() {
    return rendezvous;
  }

  /** Begins an exchange with the ranks that are added next. */
  public void beginPair(int newTag) {
    pair = true;
    destinations.clear();
    sources.clear();
    tag = newTag;
    round = 0;
  }

  /** Adds a rank to the exchange, or {@link RankMap#NO_RANK}. */
  public void addPeer(int peer, boolean sends) {
    if (peer != RankMap.NO_RANK) {
      (sends ? destinations : sources).set(peer);
    }
  }

  public int tag() {
    return tag;
  }

  /** Begins a round of the exchange: that of the calls, then that of the verdicts on them. */
  public void nextRound() {
    round++;
  }

  public void endRounds() {
    round = 0;
    count(destinations, sent);
    count(sources, received);
  }

  private static void count(BitSet current, long[] exchanges) {
    for (int peer = current.nextSetBit(0); peer >= 0; peer = current.nextSetBit(peer + 1)) {
      exchanges[peer]++;
    }
  }

  /** The rounds of all sends to a rank, or of all receives from it; it must reach as many. */
  public long rounds(int peer, boolean sends) {
    return ROUNDS * (sends ? sent : received)[peer] + round;
  }

  /** The rounds that this rank has reached, as sender or as receiver, for a rank with a tag. */
  private long reached(int peer, boolean sends, int itsTag) {
    boolean isCurrent = (sends ? destinations : sources).get(peer) && tag == itsTag;
    return rounds(peer, sends) - (isCurrent ? 0 : round);
  }

  public boolean isPair() {
    return pair;
  }

  /** Lets small contributions travel with the calls after this one. Every rank calls this. */
  public void carryContributions() {
    useRendezvous(MessageRendezvous.withoutSharedMemory(transport, notices, true));
  }

  /** Uses another rendezvous after this call, on every rank. It is closed with this. */
  public void useRendezvous(Rendezvous newRendezvous) {
    Rendezvous old = rendezvous;
    rendezvous = newRendezvous;
    try {
      old.close();
    } catch (GradientSyncException e) {
      log.debug("rank {} cannot end a message", ranks.rank(), e); // the new rendezvous needs none
    }
  }

  /** The rendezvous by messages, or null if the ranks meet in shared memory alone. */
  public MessageRendezvous byMessages() {
    return rendezvous instanceof MessageRendezvous messages ? messages : null;
  }

  /**
   * Whether this rank has reached the call for which another rank waits: the collective with a
   * number, or an exchange with as many {@link #rounds}. Once true, it stays true. The caller holds
   * the group's lock, or one thread makes all calls.
   */
  public boolean hasReached(WaitPhase phase, long number, int itsTag, int worldRank) {
    int peer = ranks.find(worldRank);
    if (peer == RankMap.NO_RANK) {
      return true;
    }
    return switch (phase) {
      case RENDEZVOUS -> calls.met() >= number;
      case SEND -> reached(peer, false, itsTag) >= number;
      case RECEIVE -> reached(peer, true, itsTag) >= number;
      case DATA -> true;
    };
  }

  /** Whether a rank is known to have reached the current collective. */
  public boolean hasArrived(int peer) {
    try {
      return !pair && rendezvous.arrival(peer).test();
    } catch (GradientSyncException e) {
      return false; // for reports, when no call needs the message any more
    }
  }

  /**
   * The ranks for which a call still waits, given one of them. A message that fails must throw when
   * it is tested, because it fails only once.
   */
  public String describeAwaited(int peer, BiPredicate<Message, Integer> test) {
    List<Integer> missing = new ArrayList<>();
    for (int other = 0; !pair && other < ranks.size(); other++) {
      if (other != ranks.rank() && !test.test(rendezvous.arrival(other), other)) {
        missing.add(other);
      }
    }
    return missing.size() > 1 ? ranks.names(missing) : ranks.name(peer);
  }

  /** The ranks that did not arrive, or arrived and did not finish, and their last finished call. */
  public String describeLate(int peer, BiPredicate<Message, Integer> test) {
    String awaited = describeAwaited(peer, test);
    boolean came = !pair && test.test(rendezvous.arrival(peer), peer);
    // A rank begins a call only after the one before, so the last call that this rank has finished
    // is also the last one of the missing ranks.
    return awaited
        + (came ? " came and did not do its part" : " did not join")
        + " in time, lastFinished="
        + calls.lastFinished();
  }

  @Override
  public void close() {
    Resources.closeAll(rendezvous, notices);
  }
}
