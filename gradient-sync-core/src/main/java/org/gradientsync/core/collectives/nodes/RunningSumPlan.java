package org.gradientsync.core.collectives.nodes;

import org.gradientsync.DeviceBuffer;
import org.gradientsync.SumOrder;
import org.gradientsync.core.collectives.messages.Shards;
import org.gradientsync.core.collectives.shared.NodeBuffers;
import org.gradientsync.core.ranks.Channel;
import org.gradientsync.core.ranks.RankMap;

/**
 * An all-reduce over several nodes by a running sum, whose result returns from node to node.
 *
 * <p>With {@link SumOrder#RANKS}, each node sends and receives every element twice, the first and
 * the last one once, however many ranks they have. With {@link SumOrder#ANY}, (M-1)/M times twice,
 * on M nodes.
 */
final class RunningSumPlan extends SumPlan {
  RunningSumPlan(
      TwoLevelRanks ranks,
      SumOrder sumOrder,
      NodeBuffers.Mapped buffers,
      Shards shards,
      DeviceBuffer scratch) {
    super(ranks, sumOrder, buffers, shards, shards.chunksOf(ranks.layout().localRank()));
    int nodes = layout.nodes();
    for (int shard = 0; shard < shards.ranks(); shard++) {
      divide(shard, new ChunkOrder(shards.chunksOf(shard), nodes, layout.node(), sumOrder));
    }
    for (int i = 0; i < chunks; i++) {
      prepareResult(i);
    }
    prepareSums(scratch);
  }

  private void divide(int shard, ChunkOrder results) {
    long[] first = new long[results.chunks()];
    long[] length = new long[results.chunks()];
    for (int i = 0; i < first.length; i++) {
      first[i] = shards.first(shard, results.result(i));
      length[i] = shards.length(shard, results.result(i));
    }
    divide(shard, first, length);
  }

  private void prepareResult(int chunk) {
    long first = shards.first(localRank, chunk);
    long length = shards.length(localRank, chunk);
    DeviceBuffer result = buffers.of(localRank).slice(first, length);
    prepare(chunk, first, length, result);
    if (!order.isFirst(chunk)) {
      resultSends[chunk] = message(result, previous, Channel.GATHER, true);
    }
    if (!order.isLast(chunk)) {
      resultReceives[chunk] = message(result, next, Channel.GATHER, false);
    }
  }

  /**
   * A node that returns no results cannot keep the node before from sending sums, so a missing sum
   * is looked at first.
   */
  @Override
  int awaitedSender() {
    if (sum == null || sum.hasAllResults() && !sum.isExpectingSum()) {
      return RankMap.NO_RANK;
    }
    return sum.isExpectingSum() ? previous : next;
  }

  @Override
  int awaitedReceiver() {
    return sum != null && !sum.hasSentAll() ? next : previous;
  }

  @Override
  public void returnResult(int chunk) {
    startIfAny(resultSends[chunk]);
    publish(sum.results());
  }
}
