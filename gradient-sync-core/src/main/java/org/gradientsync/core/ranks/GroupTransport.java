package org.gradientsync.core.ranks;

import java.nio.ByteBuffer;
import org.gradientsync.spi.Message;
import org.gradientsync.spi.Transport;

/**
 * The messages of one group: the job's transport with the group's rank numbers and its own tag
 * range, the context.
 */
public record GroupTransport(Transport transport, RankMap ranks, int context) {
  public int rank() {
    return ranks.rank();
  }

  public int size() {
    return ranks.size();
  }

  /** Prepares a message to a rank of the group, on a {@link Channel}. */
  public Message sender(ByteBuffer memory, int peer, int channel) {
    return transport.sender(memory, ranks.worldRank(peer), context << Channel.BITS | channel);
  }

  /**
   * Prepares to receive a message from a rank of the group, or from any with {@link
   * Transport#ANY_RANK}, on a {@link Channel}.
   */
  public Message receiver(ByteBuffer memory, int peer, int channel) {
    int sender = peer == Transport.ANY_RANK ? peer : ranks.worldRank(peer);
    return transport.receiver(memory, sender, context << Channel.BITS | channel);
  }
}
