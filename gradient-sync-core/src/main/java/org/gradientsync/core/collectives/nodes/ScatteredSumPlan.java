package org.gradientsync.core.collectives.nodes;

import org.gradientsync.DeviceBuffer;
import org.gradientsync.SumOrder;
import org.gradientsync.core.collectives.messages.Shards;
import org.gradientsync.core.collectives.shared.NodeBuffers;
import org.gradientsync.core.ranks.Channel;
import org.gradientsync.core.ranks.RankMap;

/**
 * A reduce-scatter over several nodes with equally many ranks, by a running sum whose results go
 * straight to their owners. A rank carries the blocks of the ranks with its number on all nodes.
 *
 * <p>With {@link SumOrder#RANKS}, the last node rounds all sums: a node sends and receives each
 * element once, and receives its own blocks. With {@link SumOrder#ANY}, a sum ends where its owner
 * is: (M-1)/M times once, on M nodes.
 */
final class ScatteredSumPlan extends SumPlan {
  private final int nodes;
  private final int lastNode; // the carrier there

  /**
   * @param buffers the inputs of this node's ranks
   * @param shards a node's blocks, in chunks
   * @param scratch for sums
   * @param rounded for results on their way, {@link #roundedCount} elements of the buffers' type
   */
  ScatteredSumPlan(
      TwoLevelRanks ranks,
      SumOrder sumOrder,
      NodeBuffers.Mapped buffers,
      Shards shards,
      DeviceBuffer scratch,
      DeviceBuffer rounded,
      DeviceBuffer out) {
    super(ranks, sumOrder, buffers, shards, shards.chunks() * ranks.layout().nodes());
    nodes = layout.nodes();
    lastNode = carrier(nodes - 1);
    for (int chunk = 0; chunk < chunks; chunk++) {
      prepareResult(chunk, rounded, out);
    }
    prepareSums(scratch);
  }

  /** How many elements of results on their way a plan needs. */
  static long roundedCount(SumOrder order, int nodes, Shards shards) {
    return order == SumOrder.ANY ? 0 : slots(order, nodes) * shards.chunk();
  }

  /** The node whose block a chunk is of: a sum in any order begins on the node after it. */
  private int owner(int chunk) {
    return (chunk + nodes - 1) % nodes;
  }

  private void prepareResult(int chunk, DeviceBuffer rounded, DeviceBuffer out) {
    int owner = owner(chunk);
    long first = shards.first(localRank, chunk / nodes);
    long length = shards.length(localRank, chunk / nodes);
    long place = first - shards.first(localRank, 0);
    boolean isOwn = owner == layout.node();
    DeviceBuffer result = isOwn ? out.slice(place, length) : null;
    if (order.isLast(chunk) && !isOwn) {
      result = rounded.slice(chunk % slots * shards.chunk(), length);
    }
    prepare(chunk, owner * shards.count() + first, length, result);
    if (order.isLast(chunk) && !isOwn) {
      sendCompleted(chunk, message(result, carrier(owner), Channel.GATHER, true));
    } else if (isOwn && !order.isLast(chunk)) {
      resultReceives[chunk] = message(result, lastNode, Channel.GATHER, false);
    }
  }

  @Override
  int awaitedSender() {
    if (sum.isExpectingSum()) {
      return previous;
    }
    return sum.sending() < 0 && sum.awaitedResult() >= 0 ? lastNode : RankMap.NO_RANK;
  }

  @Override
  int awaitedReceiver() {
    int chunk = sum.sending();
    return chunk >= 0 && order.isLast(chunk) ? carrier(owner(chunk)) : next;
  }

  @Override
  public void returnResult(int chunk) {
    // the last node has sent it as a sum
  }

  @Override
  public boolean isResultReturned(int chunk) {
    return true;
  }
}
