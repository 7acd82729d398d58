package org.gradientsync.internal.ranks;

import java.nio.ByteBuffer;
import org.gradientsync.spi.Message;
import org.gradientsync.spi.Transport;

/**
 * Messages between the ranks of one group: the job's transport, with the group's own rank numbers
 * and a tag range that no other group has.
 */
public final class GroupTransport {
  private final Transport transport;
  private final RankMap ranks;
  private final int context;

  /**
   * The messages of a group.
   *
   * @param transport of the whole job
   * @param context the group's tag range
   */
  public GroupTransport(Transport transport, RankMap ranks, int context) {
    this.transport = transport;
    this.ranks = ranks;
    this.context = context;
  }

  /** The group's ranks. */
  public RankMap ranks() {
    return ranks;
  }

  /** This rank's number in the group. */
  public int rank() {
    return ranks.rank();
  }

  /** The number of ranks in the group. */
  public int size() {
    return ranks.size();
  }

  /**
   * Prepares sending to a rank of the group.
   *
   * @param memory see {@link Transport#sender}
   * @param channel one of {@link Channel}
   */
  public Message sender(ByteBuffer memory, int peer, int channel) {
    return transport.sender(memory, ranks.worldRank(peer), context << Channel.BITS | channel);
  }

  /**
   * Prepares receiving from a rank of the group.
   *
   * @param memory see {@link Transport#receiver}
   * @param channel one of {@link Channel}
   */
  public Message receiver(ByteBuffer memory, int peer, int channel) {
    return transport.receiver(memory, ranks.worldRank(peer), context << Channel.BITS | channel);
  }
}
