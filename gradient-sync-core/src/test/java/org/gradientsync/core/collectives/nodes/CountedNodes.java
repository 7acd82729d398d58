package org.gradientsync.core.collectives.nodes;

import java.nio.ByteBuffer;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.function.IntUnaryOperator;
import org.gradientsync.core.group.OtherWorld;
import org.gradientsync.core.ranks.Channel;
import org.gradientsync.spi.Message;

/**
 * Ranks as threads that take each other for ranks of other nodes, and count what those of a node
 * send to others.
 */
final class CountedNodes extends OtherWorld {
  private final Set<Integer> channels;
  private final AtomicLongArray messages;
  private final AtomicLongArray bytes;

  /**
   * @param perNode the number of ranks of each node
   * @param channels those that count
   * @param messages by node
   * @param bytes by node
   */
  CountedNodes(
      int perNode, Set<Integer> channels, AtomicLongArray messages, AtomicLongArray bytes) {
    this(rank -> rank / perNode, channels, messages, bytes);
  }

  /**
   * @param nodes the node of each rank
   * @param channels those that count
   * @param messages by node
   * @param bytes by node
   */
  CountedNodes(
      IntUnaryOperator nodes,
      Set<Integer> channels,
      AtomicLongArray messages,
      AtomicLongArray bytes) {
    super(nodes);
    this.channels = channels;
    this.messages = messages;
    this.bytes = bytes;
  }

  @Override
  public Message sender(ByteBuffer memory, int peer, int tag) {
    Message message = super.sender(memory, peer, tag);
    int node = nodeOf(rank());
    if (!channels.contains(tag % (1 << Channel.BITS)) || nodeOf(peer) == node) {
      return message;
    }
    int size = memory.remaining();
    return beforeStarts(
        message,
        () -> {
          messages.incrementAndGet(node);
          bytes.addAndGet(node, size);
        });
  }
}
