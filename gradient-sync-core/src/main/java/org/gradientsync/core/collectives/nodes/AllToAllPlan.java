package org.gradientsync.core.collectives.nodes;

import org.gradientsync.DeviceBuffer;
import org.gradientsync.core.collectives.messages.Shards;
import org.gradientsync.core.collectives.shared.NodeBuffers;
import org.gradientsync.core.ranks.Channel;

/**
 * An all-to-all of small blocks over several nodes with equally many ranks. For each other node, a
 * rank collects the blocks that all ranks of its node have for the rank with its number there, and
 * sends them in one message.
 */
final class AllToAllPlan extends PairwisePlan {
  private final Copies[] collected; // by turn

  /**
   * @param buffers the inputs of this node's ranks
   * @param shards a node's blocks
   * @param scratch {@link #scratchCount} elements
   */
  AllToAllPlan(
      TwoLevelRanks ranks,
      NodeBuffers.Mapped buffers,
      Shards shards,
      DeviceBuffer scratch,
      DeviceBuffer out) {
    super(ranks, buffers, shards, ranks.layout().nodes());
    collected = new Copies[turns];
    long row = shards.count();
    long block = shards.length(localRank, 0);
    for (int turn = 0; turn < turns; turn++) {
      boolean atHome = target(turn) == layout.node();
      DeviceBuffer come = out.slice(source(turn) * row, row);
      DeviceBuffer sent = atHome ? come : scratch.slice((turn - 1) * row, row);
      collected[turn] = new Copies();
      for (int local = 0; local < localSize; local++) {
        long place = target(turn) * row + localRank * block;
        collected[turn].add(
            buffers.of(local).slice(place, block), sent.slice(local * block, block));
      }
      if (!atHome) {
        sends[turn] = message(sent, carrier(target(turn)), Channel.DATA, true);
        receives[turn] = message(come, carrier(source(turn)), Channel.DATA, false);
      }
    }
  }

  /** How many elements of scratch a plan needs. */
  static long scratchCount(int nodes, Shards shards) {
    return (nodes - 1) * shards.count();
  }

  @Override
  void prepare(int turn) {
    collected[turn].run();
    nodeRanks.requireNoneGaveUp(null); // before what was read from its memory leaves the node
  }

  @Override
  void take(int turn) {
    // it has come to its place
  }
}
