package org.gradientsync.core.rendezvous;

import java.nio.ByteBuffer;
import java.util.concurrent.atomic.AtomicLong;
import org.gradientsync.core.backend.HostBuffers;
import org.gradientsync.core.ranks.Channel;
import org.gradientsync.core.ranks.GroupTransport;
import org.gradientsync.spi.Message;
import org.gradientsync.spi.Resources;

/**
 * The messages to another rank, or from it: the calls that both exchange for the last of them.
 *
 * <p>Each message has two stages: the rank has come to it, and has met the ranks of all messages
 * that it has at the same time. Both ranks of a message count alike, because neither ends it
 * without the other.
 */
public record Link(
    int peer,
    boolean sends,
    ByteBuffer own,
    ByteBuffer other,
    Message send,
    Message receive,
    AtomicLong stages)
    implements AutoCloseable {
  static Link of(GroupTransport group, int peer, boolean sends) {
    ByteBuffer own = HostBuffers.allocate(CallRecord.BYTES);
    ByteBuffer other = HostBuffers.allocate(CallRecord.BYTES);
    Message send = group.sender(own, peer, sends ? Channel.MESSAGES : Channel.REPLIES);
    Message receive = group.receiver(other, peer, sends ? Channel.REPLIES : Channel.MESSAGES);
    return new Link(peer, sends, own, other, send, receive, new AtomicLong());
  }

  /** Reaches the next stage. One thread at a time does, so that plain access is enough. */
  void advance() {
    stages.setPlain(stages.getPlain() + 1);
  }

  public boolean matches() {
    return CallRecord.samePair(own, other) && CallRecord.sameName(own, other, CallRecord.INPUT);
  }

  public boolean isOfOneOrigin() {
    return CallRecord.sameOrigin(own, other);
  }

  @Override
  public void close() {
    Resources.closeAll(send, receive);
  }
}
