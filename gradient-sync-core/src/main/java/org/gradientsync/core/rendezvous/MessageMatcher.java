package org.gradientsync.core.rendezvous;

import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.function.Consumer;
import org.gradientsync.MismatchedCallException;
import org.gradientsync.core.backend.HostBuffers;
import org.gradientsync.core.backend.MessageRounds;
import org.gradientsync.core.ranks.Channel;
import org.gradientsync.core.ranks.GroupTransport;
import org.gradientsync.core.rendezvous.CallRecord.Origin;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.HostCall;
import org.gradientsync.spi.Message;
import org.gradientsync.spi.Resources;

/**
 * Brings two ranks together for a message. Sender and receiver exchange their calls, so both know
 * whether type, count and tag match before any element moves. The caller holds the group's lock.
 */
public final class MessageMatcher implements AutoCloseable {
  private final GroupTransport transport;
  private final MatchingGroup group;
  private final Calls calls;
  private final Arrivals arrivals;
  private final Link[] sending;
  private final Link[] receiving;
  private final List<CollectiveCall> single = new ArrayList<>();
  private final List<Link> links = new ArrayList<>(); // of the round that meets
  private final Deque<List<CollectiveCall>> spare = new ArrayDeque<>(); // one for each depth

  /** The calls that this rank and a peer exchange for messages in one direction. */
  private record Link(
      int peer, boolean sends, ByteBuffer own, ByteBuffer other, Message send, Message receive)
      implements AutoCloseable {
    boolean matches() {
      return CallRecord.samePair(own, other) && CallRecord.sameName(own, other, CallRecord.INPUT);
    }

    boolean isOfOneOrigin() {
      return CallRecord.sameOrigin(own, other);
    }

    @Override
    public void close() {
      Resources.closeAll(send, receive);
    }
  }

  public MessageMatcher(MatchingGroup group) {
    this.group = group;
    transport = group.parts().messages();
    calls = group.parts().calls();
    arrivals = group.parts().arrivals();
    sending = new Link[transport.size()];
    receiving = new Link[transport.size()];
  }

  public void meet(Origin origin, CollectiveCall message) {
    single.clear();
    single.add(message);
    MismatchedCallException mismatch = meet(origin, single);
    single.clear();
    if (mismatch != null) {
      calls.finished();
      throw mismatch;
    }
  }

  /** Exchanges messages round by round. The body moves those that match; it may exchange others. */
  public void exchange(
      Origin origin, List<CollectiveCall> messages, Consumer<List<CollectiveCall>> body) {
    MismatchedCallException failure = null;
    List<CollectiveCall> round = spare.isEmpty() ? new ArrayList<>() : spare.pop();
    try {
      int left = messages.size();
      for (int number = 0; left > 0; number++) {
        MessageRounds.fill(round, messages, number);
        left -= round.size();
        MismatchedCallException mismatch = meet(origin, round);
        failure = failure == null ? mismatch : failure;
        group.runMet(round, body);
      }
    } finally {
      spare.push(round);
    }
    if (failure != null) {
      throw failure;
    }
  }

  /** Meets the other ranks of messages, and removes those that do not match. */
  private MismatchedCallException meet(Origin origin, List<CollectiveCall> round) {
    group.requireUsable();
    arrivals.beginPairs();
    links.clear();
    try {
      for (int i = 0; i < round.size(); i++) {
        links.add(record(origin, round.get(i)));
      }
      exchangeCalls(false);
      for (int i = 0; i < links.size(); i++) {
        arrivals.reach(links.get(i).peer, links.get(i).sends);
      }
      if (round.get(0) instanceof HostCall) {
        exchangeCalls(true); // so that none returns before the ranks have met those of all messages
      }
    } catch (RuntimeException | Error e) {
      throw group.failed(e);
    }
    MismatchedCallException first = null;
    for (int i = links.size() - 1; i >= 0; i--) {
      Link link = links.get(i);
      if (!link.matches()) {
        round.remove(i);
        first =
            new MismatchedCallException(
                CallTable.ofPair(transport.rank(), link.own, link.peer, link.other));
      }
    }
    return first;
  }

  private Link record(Origin origin, CollectiveCall message) {
    int peer = message.peer();
    boolean sends = message.sends();
    Link[] all = sends ? sending : receiving;
    all[peer] = all[peer] == null ? newLink(peer, sends) : all[peer];
    all[peer].own.put(0, calls.record(origin, message), 0, CallRecord.BYTES);
    arrivals.begin(peer, sends, all[peer].own);
    return all[peer];
  }

  private Link newLink(int peer, boolean sends) {
    ByteBuffer own = HostBuffers.allocate(CallRecord.BYTES);
    ByteBuffer other = HostBuffers.allocate(CallRecord.BYTES);
    int there = sends ? Channel.MESSAGES : Channel.REPLIES;
    int back = sends ? Channel.REPLIES : Channel.MESSAGES;
    Message send = transport.sender(own, peer, there);
    return new Link(peer, sends, own, other, send, transport.receiver(other, peer, back));
  }

  /** Exchanges the calls of all links; again only where the other rank does, too: of one origin. */
  private void exchangeCalls(boolean again) {
    for (int i = 0; i < links.size(); i++) {
      Link link = links.get(i);
      if (!again || link.isOfOneOrigin()) {
        link.receive.start();
        link.send.start();
      }
    }
    for (int i = 0; i < links.size(); i++) {
      Link link = links.get(i);
      if (again && !link.isOfOneOrigin()) {
        continue;
      }
      calls.show(link.own);
      WaitPhase phase = link.sends ? WaitPhase.SEND : WaitPhase.RECEIVE;
      long number = arrivals.reached(link.peer, link.sends);
      group.await(link.receive, link.peer, phase, number);
      group.await(link.send, link.peer, phase, number);
    }
  }

  @Override
  public void close() {
    Resources.closeAll(() -> Resources.closeAll(sending), () -> Resources.closeAll(receiving));
  }
}
