package org.gradientsync.core.group;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
import org.gradientsync.MismatchedCallException;
import org.gradientsync.core.backend.HostBuffers;
import org.gradientsync.core.backend.MessageRounds;
import org.gradientsync.core.ranks.Channel;
import org.gradientsync.core.ranks.GroupTransport;
import org.gradientsync.core.ranks.RankMap;
import org.gradientsync.core.rendezvous.Arrivals;
import org.gradientsync.core.rendezvous.CallRecord;
import org.gradientsync.core.rendezvous.Calls;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.Message;
import org.gradientsync.spi.Resources;

/**
 * Brings two ranks together for a message between their device buffers. Sender and receiver
 * exchange their calls, so both know whether type and count match before any element moves. The
 * caller holds the group's lock.
 */
final class MessageMatcher implements AutoCloseable {
  private final GroupTransport transport;
  private final CallMatcher matcher;
  private final Wait wait;
  private final Calls calls;
  private final Arrivals arrivals;
  private final Link[] sending;
  private final Link[] receiving;
  private final List<CollectiveCall> round = new ArrayList<>(); // that is being exchanged

  /** The calls that two ranks exchange for messages in one direction. */
  private record Link(ByteBuffer own, ByteBuffer other, Message send, Message receive)
      implements AutoCloseable {
    @Override
    public void close() {
      Resources.closeAll(send, receive);
    }
  }

  MessageMatcher(
      GroupTransport transport, CallMatcher matcher, Wait wait, Calls calls, Arrivals arrivals) {
    this.wait = wait;
    this.transport = transport;
    this.matcher = matcher;
    this.calls = calls;
    this.arrivals = arrivals;
    sending = new Link[transport.size()];
    receiving = new Link[transport.size()];
  }

  /** See {@link org.gradientsync.spi.RankGroup#meet}. */
  void meet(CollectiveCall message) {
    boolean sends = message.sends();
    int peer = message.peer();
    matcher.beginPair(
        sends ? peer : RankMap.NO_RANK, sends ? RankMap.NO_RANK : peer, Channel.DEVICE_TAG);
    Link link = link(message);
    link.own.put(0, calls.recordMessage(message), 0, CallRecord.BYTES);
    arrivals.pairs().nextRound();
    link.receive.start();
    link.send.start();
    await(link.receive, peer, sends);
    await(link.send, peer, sends);
    arrivals.pairs().end();
    if (!matches(link)) {
      calls.log().finished();
      throw mismatch(link, peer);
    }
  }

  /**
   * Exchanges messages round by round. See {@link org.gradientsync.spi.RankGroup#exchange}.
   *
   * @param body moves the elements of the messages of a round that match
   * @param frame runs the body
   */
  void exchange(
      List<CollectiveCall> messages,
      Consumer<List<CollectiveCall>> body,
      BiConsumer<List<CollectiveCall>, Consumer<List<CollectiveCall>>> frame) {
    MismatchedCallException failure = null;
    int left = messages.size();
    for (int number = 0; left > 0; number++) {
      MessageRounds.fill(round, messages, number);
      left -= round.size();
      MismatchedCallException mismatch = meetRound();
      failure = failure == null ? mismatch : failure;
      frame.accept(round, body);
    }
    if (failure != null) {
      throw failure;
    }
  }

  /** Removes the messages of the round that do not match. */
  private MismatchedCallException meetRound() {
    matcher.beginPair(RankMap.NO_RANK, RankMap.NO_RANK, Channel.DEVICE_TAG);
    for (int i = 0; i < round.size(); i++) {
      Link link = link(round.get(i));
      link.own.put(0, calls.recordMessage(round.get(i)), 0, CallRecord.BYTES);
    }
    for (int i = 0; i < round.size(); i++) {
      link(round.get(i)).receive.start();
      link(round.get(i)).send.start();
    }
    for (int i = 0; i < round.size(); i++) {
      CollectiveCall message = round.get(i);
      wait.await(link(message).receive, message.peer());
      wait.await(link(message).send, message.peer());
    }
    MismatchedCallException first = null;
    for (int i = round.size() - 1; i >= 0; i--) {
      CollectiveCall message = round.get(i);
      arrivals.pairs().count(message.peer(), message.sends());
      if (!matches(link(message))) {
        round.remove(i);
        first = mismatch(link(message), message.peer());
      }
    }
    return first;
  }

  private static boolean matches(Link link) {
    return CallRecord.samePair(link.own, link.other)
        && CallRecord.sameName(link.own, link.other, CallRecord.INPUT);
  }

  private Link link(CollectiveCall message) {
    return link(message.sends() ? sending : receiving, message.peer(), message.sends());
  }

  private void await(Message message, int peer, boolean sends) {
    if (sends) {
      matcher.awaitReceiver(message, peer);
    } else {
      matcher.awaitSender(message, peer);
    }
  }

  private Link link(Link[] links, int peer, boolean sends) {
    if (links[peer] == null) {
      ByteBuffer own = HostBuffers.allocate(CallRecord.BYTES);
      ByteBuffer other = HostBuffers.allocate(CallRecord.BYTES);
      int forward = Channel.sending(Channel.DEVICE_TAG);
      int back = Channel.receiving(Channel.DEVICE_TAG);
      links[peer] =
          new Link(
              own,
              other,
              transport.sender(own, peer, sends ? forward : back),
              transport.receiver(other, peer, sends ? back : forward));
    }
    return links[peer];
  }

  private MismatchedCallException mismatch(Link link, int peer) {
    int rank = transport.rank();
    return new MismatchedCallException(
        "the ranks' calls do not match, rank="
            + rank
            + ":\n  rank "
            + rank
            + ": "
            + CallRecord.describe(link.own)
            + "\n  rank "
            + peer
            + ": "
            + CallRecord.describe(link.other));
  }

  @Override
  public void close() {
    Resources.closeAll(() -> Resources.closeAll(sending), () -> Resources.closeAll(receiving));
  }
}
