package org.gradientsync.core.rendezvous;

import java.nio.ByteBuffer;
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
 * Which calls the ranks of a group have reached: collectives, in which all ranks meet, and messages
 * between two ranks. The caller holds the group's lock unless a method states otherwise.
 */
public final class Arrivals implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(Arrivals.class);

  private final GroupTransport transport;
  private final RankMap ranks;
  private final Calls calls;
  private final ArrivalNotices notices;
  private Rendezvous rendezvous;

  private final Link[] sending; // to each other rank; made for its first message
  private final Link[] receiving;
  private final BitSet destinations = new BitSet(); // of the last messages
  private boolean pair; // whether the last call is a message

  public Arrivals(GroupTransport transport, Calls calls, Liveness liveness) {
    this.transport = transport;
    this.ranks = transport.ranks();
    this.calls = calls;
    sending = new Link[ranks.size()];
    receiving = new Link[ranks.size()];
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

  /** Begins messages with other ranks, each of which {@link #begin} adds. */
  public void beginPairs() {
    pair = true;
    destinations.clear();
  }

  /** Begins a message to a rank, or from it. */
  public Link begin(int peer, boolean sends, ByteBuffer call) {
    Link[] all = sends ? sending : receiving;
    all[peer] = all[peer] == null ? Link.of(transport, peer, sends) : all[peer];
    all[peer].own().put(0, call, 0, CallRecord.BYTES);
    all[peer].advance();
    destinations.set(peer, sends || destinations.get(peer));
    return all[peer];
  }

  /** The link of the last message with a rank; of two messages, that to it. */
  public Link lastWith(int peer) {
    return (destinations.get(peer) ? sending : receiving)[peer];
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
   * Whether this rank has reached the collective, or the stage of a message, that another rank
   * waits for. Once true, it stays true. The caller holds the group's lock, or one thread makes all
   * calls.
   */
  public boolean hasReached(WaitPhase phase, long number, int worldRank) {
    int peer = ranks.find(worldRank);
    if (peer == RankMap.NO_RANK) {
      return true;
    }
    return switch (phase) {
      case RENDEZVOUS -> calls.met() >= number;
      case SEND, SEND_DATA -> hasReached(receiving[peer], number);
      case RECEIVE, RECEIVE_DATA -> hasReached(sending[peer], number);
      case DATA -> true;
    };
  }

  private static boolean hasReached(Link link, long stage) {
    return (link == null ? 0 : link.stages().getPlain()) >= stage;
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
    String missed = came ? "came and did not do its part" : "did not join";
    // A rank begins a call only after the one before, so the last call that this rank has finished
    // is also the last one of the missing ranks.
    return "%s %s in time, lastFinished=%s".formatted(awaited, missed, calls.lastFinished());
  }

  @Override
  public void close() {
    Resources.closeAll(
        rendezvous,
        notices,
        () -> Resources.closeAll(sending),
        () -> Resources.closeAll(receiving));
  }
}
