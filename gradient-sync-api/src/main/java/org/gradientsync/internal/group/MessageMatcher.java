package org.gradientsync.internal.group;

import java.nio.ByteBuffer;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.MismatchedCallException;
import org.gradientsync.internal.host.HostBuffers;
import org.gradientsync.internal.matching.Arrivals;
import org.gradientsync.internal.matching.Call;
import org.gradientsync.internal.matching.Calls;
import org.gradientsync.internal.ranks.Channel;
import org.gradientsync.internal.ranks.GroupTransport;
import org.gradientsync.internal.ranks.RankMap;
import org.gradientsync.spi.AbstractDeviceBuffer;
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

  /** The calls that two ranks exchange for messages in one direction. */
  private record Link(ByteBuffer own, ByteBuffer other, Message send, Message receive)
      implements AutoCloseable {
    @Override
    public void close() {
      Resources.closeAll(send, receive);
    }
  }

  MessageMatcher(GroupTransport transport, CallMatcher matcher, Calls calls, Arrivals arrivals) {
    this.transport = transport;
    this.matcher = matcher;
    this.calls = calls;
    this.arrivals = arrivals;
    sending = new Link[transport.size()];
    receiving = new Link[transport.size()];
  }

  /** See {@link org.gradientsync.spi.RankGroup#meetForMessage}. */
  void meet(DeviceBuffer buffer, int peer, boolean sends) {
    AbstractDeviceBuffer data = (AbstractDeviceBuffer) buffer;
    Call.Kind kind = sends ? Call.Kind.DEVICE_SEND : Call.Kind.DEVICE_RECEIVE;
    matcher.beginPair(
        sends ? peer : RankMap.NO_RANK, sends ? RankMap.NO_RANK : peer, Channel.DEVICE_TAG);
    ByteBuffer record = calls.pairs(kind, Call.element(data.type()), data.count(), peer, data);
    Link link = link(sends ? sending : receiving, peer, sends);
    link.own.put(0, record, 0, Call.BYTES);
    arrivals.pairs().nextRound();
    link.receive.start();
    link.send.start();
    await(link.receive, peer, sends);
    await(link.send, peer, sends);
    arrivals.pairs().end();
    if (!Call.samePair(link.own, link.other) || !Call.sameName(link.own, link.other)) {
      calls.log().finished();
      throw mismatch(link, peer);
    }
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
      ByteBuffer own = HostBuffers.allocate(Call.BYTES);
      ByteBuffer other = HostBuffers.allocate(Call.BYTES);
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
            + Call.describe(link.own)
            + "\n  rank "
            + peer
            + ": "
            + Call.describe(link.other));
  }

  @Override
  public void close() {
    Resources.closeAll(() -> Resources.closeAll(sending), () -> Resources.closeAll(receiving));
  }
}
