package org.gradientsync.core.collectives.nodes;

import org.gradientsync.DeviceBuffer;
import org.gradientsync.core.collectives.messages.Shards;
import org.gradientsync.core.collectives.shared.NodeBuffers;
import org.gradientsync.core.host.HostBuffer;
import org.gradientsync.core.ranks.Channel;

/**
 * An all-gather over several nodes with equally many ranks. Each rank sends its block to the ranks
 * with its number on the other nodes. A node's ranks copy what has come from each other's outputs,
 * so each node receives each block once.
 */
final class AllGatherPlan extends PairwisePlan {
  private final Copies[] own; // by turn

  /**
   * @param buffers the outputs of this node's ranks
   * @param shards a node's blocks, in pieces
   * @param in this rank's block, which may be in its place in the output
   */
  AllGatherPlan(TwoLevelRanks ranks, NodeBuffers.Mapped buffers, Shards shards, HostBuffer in) {
    super(ranks, buffers, shards, shards.chunks() * ranks.layout().nodes());
    own = new Copies[turns];
    for (int shard = 0; shard < shards.ranks(); shard++) {
      long[] first = new long[turns];
      long[] length = new long[turns];
      for (int turn = 0; turn < turns; turn++) {
        first[turn] = source(turn) * shards.count() + shards.first(shard, turn / nodes);
        length[turn] = shards.length(shard, turn / nodes);
      }
      divide(shard, first, length);
    }
    for (int turn = 0; turn < turns; turn++) {
      prepare(turn, in);
    }
  }

  private void prepare(int turn, HostBuffer in) {
    long place = shards.first(localRank, turn / nodes);
    long length = shards.length(localRank, turn / nodes);
    DeviceBuffer sent = in.slice(place - shards.first(localRank, 0), length);
    DeviceBuffer come = buffers.of(localRank).slice(source(turn) * shards.count() + place, length);
    own[turn] = new Copies();
    if (source(turn) != layout.node()) {
      sends[turn] = message(sent, carrier(target(turn)), Channel.GATHER, true);
      receives[turn] = message(come, carrier(source(turn)), Channel.GATHER, false);
    } else if (!in.overlaps(buffers.of(localRank))) {
      own[turn].add(sent, come);
    }
  }

  @Override
  void prepare(int turn) {
    // the elements are in the input
  }

  @Override
  void take(int turn) {
    own[turn].run();
    publish(turn + 1);
  }
}
