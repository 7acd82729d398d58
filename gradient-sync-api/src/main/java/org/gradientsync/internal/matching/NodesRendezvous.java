package org.gradientsync.internal.matching;

import java.nio.ByteBuffer;
import org.gradientsync.internal.ranks.Channel;
import org.gradientsync.internal.ranks.GroupTransport;
import org.gradientsync.internal.ranks.NodeLayout;
import org.gradientsync.spi.Message;

/**
 * A rendezvous of ranks on several nodes: in shared memory with the ranks of this node, by messages
 * with the others.
 */
public final class NodesRendezvous implements Rendezvous {
  private final NodeLayout layout;
  private final SharedMemoryRendezvous node;
  private final MessageRendezvous messages;

  /**
   * @param node the rendezvous of this node's ranks, by their {@linkplain NodeLayout#localRank
   *     local ranks}
   */
  public NodesRendezvous(GroupTransport group, NodeLayout layout, SharedMemoryRendezvous node) {
    this.layout = layout;
    this.node = node;
    messages = new MessageRendezvous(group, Channel.CALLS, 0, peer -> !isNear(peer));
  }

  private boolean isNear(int peer) {
    return layout.nodeOf(peer) == layout.node();
  }

  /** The rendezvous of this node's ranks. */
  public SharedMemoryRendezvous node() {
    return node;
  }

  @Override
  public ByteBuffer own(long sequence) {
    return node.own(sequence);
  }

  @Override
  public void arrive(long sequence) {
    messages.own(sequence).put(0, node.own(sequence), 0, Call.BYTES);
    node.arrive(sequence);
    messages.arrive(sequence);
  }

  @Override
  public Message arrival(int peer) {
    return isNear(peer) ? node.arrival(layout.localRank(peer)) : messages.arrival(peer);
  }

  @Override
  public Message sent(int peer) {
    return isNear(peer) ? node.sent(layout.localRank(peer)) : messages.sent(peer);
  }

  @Override
  public ByteBuffer call(int peer) {
    return isNear(peer) ? node.call(layout.localRank(peer)) : messages.call(peer);
  }

  @Override
  public void abandon() {
    node.abandon();
  }

  @Override
  public boolean abandoned(int peer) {
    return isNear(peer) && node.abandoned(layout.localRank(peer));
  }

  @Override
  public void close() {
    messages.close();
  }
}
