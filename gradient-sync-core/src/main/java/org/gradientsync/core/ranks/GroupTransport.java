package org.gradientsync.core.ranks;

import java.nio.ByteBuffer;
import org.gradientsync.spi.Message;
import org.gradientsync.spi.Transport;

/**
 * The messages of one group: the job's transport with the group's rank numbers and its own tag
 * range.
 */
public final class GroupTransport {
  private final Transport transport;
  private final RankMap ranks;
  private final int context;

  /**
   * @param transport of the whole job
   * @param context the group's tag range
   */
  public GroupTransport(Transport transport, RankMap ranks, int context) {
    this.transport = transport;
    this.ranks = ranks;
    this.context = context;
  }

  public RankMap ranks() {
    return ranks;
  }

  public int rank() {
    return ranks.rank();
  }

  public int size() {
    return ranks.size();
  }

  /**
   * Prepares a message to a rank of the group. See {@link Transport#sender}.
   *
   * @param channel one of {@link Channel}
   */
  public Message sender(ByteBuffer memory, int peer, int channel) {
    return transport.sender(memory, ranks.worldRank(peer), context << Channel.BITS | channel);
  }

  /**
   * Prepares to receive a message from a rank of the group, or from any with {@link
   * Transport#ANY_RANK}. See {@link Transport#receiver}.
   *
   * @param channel one of {@link Channel}
   */
  public Message receiver(ByteBuffer memory, int peer, int channel) {
    int sender = peer == Transport.ANY_RANK ? peer : ranks.worldRank(peer);
    return transport.receiver(memory, sender, context << Channel.BITS | channel);
  }
}
