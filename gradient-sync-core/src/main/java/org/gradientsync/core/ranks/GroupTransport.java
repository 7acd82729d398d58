package org.gradientsync.core.ranks;

import java.nio.ByteBuffer;
import java.util.stream.IntStream;
import org.gradientsync.spi.Message;
import org.gradientsync.spi.Transport;

/** The messages of one group: the job's transport with the group's rank numbers and tag range. */
public record GroupTransport(Transport transport, RankMap ranks, GroupKey key) {
  public int rank() {
    return ranks.rank();
  }

  public int size() {
    return ranks.size();
  }

  /** The messages of a group of some of the ranks, this one among them, in this order. */
  public GroupTransport part(GroupKey newKey, int[] peers) {
    int[] worldRanks = IntStream.of(peers).map(ranks::worldRank).toArray();
    int own = IntStream.of(peers).boxed().toList().indexOf(rank());
    return new GroupTransport(transport, new RankMap(transport, worldRanks, own), newKey);
  }

  public Message sender(ByteBuffer memory, int peer, int channel) {
    return transport.sender(memory, ranks.worldRank(peer), key.context() << Channel.BITS | channel);
  }

  /** The peer may be {@link Transport#ANY_RANK}. */
  public Message receiver(ByteBuffer memory, int peer, int channel) {
    int sender = peer == Transport.ANY_RANK ? peer : ranks.worldRank(peer);
    return transport.receiver(memory, sender, key.context() << Channel.BITS | channel);
  }
}
