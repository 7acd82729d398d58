package org.gradientsync.core.collectives.nodes;

import org.gradientsync.DeviceBuffer;
import org.gradientsync.core.collectives.messages.Shards;
import org.gradientsync.core.collectives.shared.NodeBuffers;
import org.gradientsync.core.ranks.Channel;

/**
 * An all-reduce over few nodes with equally many ranks, for small buffers: each carrier sends its
 * node's sum straight to the carriers of the other nodes, and each adds the sums of all nodes, in
 * their order. So all ranks have the same bits. One round of messages, which has more bytes than
 * the rounds of a {@link HalvingPlan}.
 *
 * <p>Sums travel in the {@linkplain org.gradientsync.DataType#accumulator accumulator's type}.
 */
final class DirectSumsPlan extends PairwisePlan {
  private final Chunk[] chunks;

  /** A chunk of this rank's shard. */
  private final class Chunk {
    private final DeviceBuffer[] contributions; // of this node's ranks
    private final DeviceBuffer[] sums = new DeviceBuffer[nodes]; // by node
    private final DeviceBuffer total;

    Chunk(int index, DeviceBuffer scratch) {
      long length = shards.length(localRank, index);
      contributions = contributions(shards.first(localRank, index), length);
      long at = index * (nodes + 1) * shards.length(0, 0);
      for (int node = 0; node < nodes; node++) {
        sums[node] = scratch.slice(at + node * length, length);
      }
      total = scratch.slice(at + nodes * length, length);
    }
  }

  /**
   * @param shards one for each carrier of a node, in chunks
   * @param scratch {@link #scratchCount} elements of the accumulator's type
   */
  DirectSumsPlan(
      TwoLevelRanks ranks, NodeBuffers.Mapped buffers, Shards shards, DeviceBuffer scratch) {
    super(ranks, buffers, shards, shards.chunks() * ranks.layout().nodes());
    chunks = new Chunk[shards.chunks()];
    for (int shard = 0; shard < shards.ranks(); shard++) {
      long[] first = new long[chunks.length];
      long[] length = new long[chunks.length];
      for (int i = 0; i < chunks.length; i++) {
        first[i] = shards.first(shard, i);
        length[i] = shards.length(shard, i);
      }
      divide(shard, first, length);
    }
    for (int i = 0; i < chunks.length; i++) {
      chunks[i] = new Chunk(i, scratch);
    }
    for (int turn = 0; turn < turns; turn++) {
      if (source(turn) != layout.node()) {
        DeviceBuffer[] sums = chunks[turn / nodes].sums;
        DeviceBuffer own = sums[layout.node()];
        DeviceBuffer come = sums[source(turn)];
        sends[turn] = message(own, carrier(target(turn)), Channel.SCATTER, true);
        receives[turn] = message(come, carrier(source(turn)), Channel.SCATTER, false);
      }
    }
  }

  /** How many elements of scratch a plan needs. */
  static long scratchCount(int nodes, Shards shards) {
    return shards.chunks() * (nodes + 1) * shards.length(0, 0);
  }

  @Override
  void prepare(int turn) {
    Chunk chunk = chunks[turn / nodes];
    if (turn % nodes == 0 && chunk.total.count() > 0) {
      device.accumulate(null, chunk.contributions, chunk.sums[layout.node()], op());
      nodeRanks.requireNoneGaveUp(null); // before what was read from its memory leaves the node
    }
  }

  @Override
  void take(int turn) {
    if (turn % nodes < nodes - 1) {
      return;
    }
    Chunk chunk = chunks[turn / nodes];
    if (chunk.total.count() > 0) {
      DeviceBuffer result = chunk.contributions[localRank];
      device.accumulate(null, chunk.sums, chunk.total, op());
      device.round(chunk.total, result, result.count(), op(), group.size());
    }
    publish(turn / nodes + 1);
  }
}
