package org.gradientsync.internal.matching;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import org.gradientsync.GradientSyncException;
import org.gradientsync.internal.ranks.Channel;
import org.gradientsync.internal.ranks.GroupTransport;
import org.gradientsync.internal.ranks.RankMap;
import org.gradientsync.spi.Resources;

/**
 * How far the ranks of a group have come: to the call in which all of them meet, or in an exchange
 * between two. The group's lock is held, if nothing else is said.
 */
public final class Arrivals implements AutoCloseable {
  private final GroupTransport transport;
  private final RankMap ranks;
  private final Calls calls;
  private final Pairs pairs;
  private final MessageRendezvous messages;
  private MessageRendezvous payloadMessages; // or null
  private Rendezvous rendezvous;
  private boolean pair; // the last call was one with single other ranks

  /** The ranks meet by messages at first. */
  public Arrivals(GroupTransport transport, Calls calls) {
    this.transport = transport;
    this.ranks = transport.ranks();
    this.calls = calls;
    pairs = new Pairs(ranks.size());
    messages = new MessageRendezvous(transport, Channel.CALLS, 0);
    rendezvous = messages;
  }

  /** A call begins in which all ranks meet. */
  public Rendezvous beginRendezvous() {
    pair = false;
    return rendezvous;
  }

  /**
   * A call with single other ranks begins.
   *
   * @param destination the rank to send to, or {@link RankMap#NO_RANK}
   * @param source the rank to receive from, or {@link RankMap#NO_RANK}
   */
  public void beginPair(int destination, int source, int tag) {
    pair = true;
    pairs.begin(destination, source, tag);
  }

  /** How far this rank has come with single others. */
  public Pairs pairs() {
    return pairs;
  }

  /** Whether the last call is one with single others. */
  public boolean isPair() {
    return pair;
  }

  /**
   * From the next call on the ranks meet by messages that can bring an {@link InlinePayload}; every
   * rank calls this after the same call.
   */
  public void useInlinePayload() {
    payloadMessages =
        new MessageRendezvous(transport, Channel.PAYLOAD, InlinePayload.most(ranks.size()));
    useRendezvous(payloadMessages);
  }

  /** The ranks meet in another way from the next call on; every rank calls this after the same. */
  public void useRendezvous(Rendezvous newRendezvous) {
    rendezvous = newRendezvous;
  }

  /** How many bytes an {@link InlinePayload} may have for each rank; the same on all ranks. */
  public int payloadBytes() {
    return rendezvous.payloadBytes();
  }

  /** Whether a rank has sent its contribution with the call in which the ranks have met. */
  public boolean hasInlinePayload(int peer) {
    return Call.isInline(rendezvous.call(peer));
  }

  /** Where such a contribution lies, from call to call. */
  public ByteBuffer inlinePayloadOf(int peer, int bytes) {
    return rendezvous.call(peer).slice(Call.BYTES, bytes).order(ByteOrder.nativeOrder());
  }

  /**
   * Whether this rank has come to the call that another one waits for. Once true, it stays so. With
   * the group's lock, or where one thread makes all calls.
   *
   * @param number of the collective, or the rounds of {@link Pairs}
   * @param worldRank that of the rank that waits
   */
  public boolean hasReached(WaitPhase phase, long number, int tag, int worldRank) {
    int peer = ranks.find(worldRank);
    if (peer == RankMap.NO_RANK) {
      return true;
    }
    return switch (phase) {
      case RENDEZVOUS -> calls.met() >= number;
      case SEND -> pairs.reachedAsReceiver(peer, tag) >= number;
      case RECEIVE -> pairs.reachedAsSender(peer, tag) >= number;
      case DATA -> true;
    };
  }

  /** Whether a rank is known to have come to the call that this one is in. */
  public boolean hasArrived(int peer) {
    return !pair && isHere(peer);
  }

  private boolean isHere(int peer) {
    try {
      return rendezvous.arrival(peer).test();
    } catch (GradientSyncException e) {
      return false;
    }
  }

  /** For whom a call waits that waits for a rank. */
  public String describeAwaited(int peer) {
    return pair ? ranks.name(peer) : missing(peer);
  }

  /** Who has not come, or has come and not done its part, and what it did last. */
  public String describeLate(int peer) {
    if (pair) {
      return ranks.name(peer) + " did not join in time, lastFinished=" + calls.log().lastFinished();
    }
    // All ranks finish a call before the next, so what this one has finished, the others have.
    return missing(peer)
        + (isHere(peer) ? " came and did not do its part" : " did not join")
        + " in time, lastFinished="
        + calls.log().lastFinished();
  }

  private String missing(int waitedFor) {
    List<Integer> missing = new ArrayList<>();
    for (int peer = 0; peer < ranks.size(); peer++) {
      if (peer != ranks.rank() && !isHere(peer)) {
        missing.add(peer);
      }
    }
    return missing.size() > 1 ? ranks.names(missing) : ranks.name(waitedFor);
  }

  /** Lets the others know that this rank has given up in the middle of a call. */
  public void abandon() {
    rendezvous.abandon();
  }

  /** Whether a rank has given up in the middle of a call. */
  public boolean isAbandoned(int peer) {
    return rendezvous.abandoned(peer);
  }

  /** Ends the messages; whoever {@linkplain #useRendezvous chose} another way closes that. */
  @Override
  public void close() {
    Resources.closeAll(messages, payloadMessages);
  }
}
