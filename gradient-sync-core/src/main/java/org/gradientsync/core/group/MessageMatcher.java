package org.gradientsync.core.group;

import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.function.Consumer;
import org.gradientsync.MismatchedCallException;
import org.gradientsync.core.backend.HostBuffers;
import org.gradientsync.core.backend.MessageRounds;
import org.gradientsync.core.diagnosis.WatchedGroup;
import org.gradientsync.core.ranks.Channel;
import org.gradientsync.core.ranks.GroupTransport;
import org.gradientsync.core.rendezvous.Arrivals;
import org.gradientsync.core.rendezvous.CallRecord;
import org.gradientsync.core.rendezvous.CallRecord.Origin;
import org.gradientsync.core.rendezvous.CallTable;
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

    @Override
    public void close() {
      Resources.closeAll(send, receive);
    }
  }

  MessageMatcher(WatchedGroup group, CallMatcher matcher) {
    transport = group.messages();
    calls = group.calls();
    arrivals = group.arrivals();
    this.matcher = matcher;
    sending = new Link[transport.size()];
    receiving = new Link[transport.size()];
  }

  void meet(CollectiveCall message) {
    single.clear();
    single.add(message);
    MismatchedCallException mismatch = meet(single);
    single.clear();
    if (mismatch != null) {
      calls.finished();
      throw mismatch;
    }
  }

  /** Exchanges messages round by round. The body moves those that match; it may exchange others. */
  void exchange(List<CollectiveCall> messages, Consumer<List<CollectiveCall>> body) {
    MismatchedCallException failure = null;
    List<CollectiveCall> round = spare.isEmpty() ? new ArrayList<>() : spare.pop();
    try {
      int left = messages.size();
      for (int number = 0; left > 0; number++) {
        MessageRounds.fill(round, messages, number);
        left -= round.size();
        MismatchedCallException mismatch = meet(round);
        failure = failure == null ? mismatch : failure;
        matcher.run(round, body);
      }
    } finally {
      spare.push(round);
    }
    if (failure != null) {
      throw failure;
    }
  }

  /** Meets the other ranks of messages, and removes those that do not match. */
  private MismatchedCallException meet(List<CollectiveCall> round) {
    matcher.beginPair(Channel.DEVICE_TAG);
    links.clear();
    for (int i = 0; i < round.size(); i++) {
      CollectiveCall message = round.get(i);
      links.add(record(message));
      arrivals.addPeer(message.peer(), message.sends());
    }
    arrivals.nextRound();
    for (int i = 0; i < links.size(); i++) {
      links.get(i).receive.start();
      links.get(i).send.start();
    }
    for (int i = 0; i < links.size(); i++) {
      Link link = links.get(i);
      matcher.awaitPair(link.receive, link.peer, link.sends);
      matcher.awaitPair(link.send, link.peer, link.sends);
    }
    arrivals.endRounds();
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

  private Link record(CollectiveCall message) {
    int peer = message.peer();
    Link[] all = message.sends() ? sending : receiving;
    all[peer] = all[peer] == null ? newLink(peer, message.sends()) : all[peer];
    all[peer].own.put(0, calls.record(Origin.SYNC, message), 0, CallRecord.BYTES);
    return all[peer];
  }

  private Link newLink(int peer, boolean sends) {
    ByteBuffer own = HostBuffers.allocate(CallRecord.BYTES);
    ByteBuffer other = HostBuffers.allocate(CallRecord.BYTES);
    int forward = Channel.sending(Channel.DEVICE_TAG);
    int back = Channel.receiving(Channel.DEVICE_TAG);
    Message send = transport.sender(own, peer, sends ? forward : back);
    return new Link(
        peer, sends, own, other, send, transport.receiver(other, peer, sends ? back : forward));
  }

  @Override
  public void close() {
    Resources.closeAll(() -> Resources.closeAll(sending), () -> Resources.closeAll(receiving));
  }
}
