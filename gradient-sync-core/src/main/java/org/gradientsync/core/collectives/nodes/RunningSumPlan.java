package org.gradientsync.core.collectives.nodes;

import java.util.stream.IntStream;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.SumOrder;
import org.gradientsync.core.collectives.messages.Shards;
import org.gradientsync.core.collectives.shared.NodeBuffers;
import org.gradientsync.core.ranks.Channel;
import org.gradientsync.core.ranks.RankMap;
import org.gradientsync.spi.Message;

/**
 * An all-reduce over several nodes by a running sum, whose result returns to all.
 *
 * <p>With {@link SumOrder#RANKS}, results return along {@link ResultTrees}: each node sends and
 * receives every element at most twice, however many ranks it has. With {@link SumOrder#ANY}, they
 * return from node to node, and each sends them (M-1)/M times twice, on M nodes.
 */
final class RunningSumPlan extends SumPlan {
  private final int[] sources; // the carrier from which a chunk's result comes, or NO_RANK
  private final int[][] targets; // the carriers to which it goes
  private final Message[][] resultSends;

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
    sources = new int[chunks];
    targets = new int[chunks][];
    resultSends = new Message[chunks][];
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
    int from = order.resultFrom(chunk);
    sources[chunk] = from < 0 ? RankMap.NO_RANK : carrier(from);
    if (from >= 0) {
      resultReceives[chunk] = message(result, sources[chunk], Channel.GATHER, false);
    }
    targets[chunk] = IntStream.of(order.resultTo(chunk)).map(this::carrier).toArray();
    resultSends[chunk] = new Message[targets[chunk].length];
    for (int i = 0; i < targets[chunk].length; i++) {
      resultSends[chunk][i] = message(result, targets[chunk][i], Channel.GATHER, true);
    }
  }

  /**
   * A node that returns no results cannot keep the node before from sending sums, so a missing sum
   * is looked at first. While sums leave this node, results are missing because the next one does
   * not pass them on, as far as this one can see.
   */
  @Override
  int awaitedSender() {
    if (sum == null) {
      return RankMap.NO_RANK;
    }
    if (sum.isExpectingSum()) {
      return previous;
    }
    if (!sum.hasSentAll()) {
      return next;
    }
    int chunk = sum.awaitedResult();
    return chunk < 0 ? RankMap.NO_RANK : sources[chunk];
  }

  @Override
  int awaitedReceiver() {
    int chunk = sum == null ? -1 : sum.returning();
    for (int i = 0; chunk >= 0 && i < targets[chunk].length; i++) {
      if (!isDone(resultSends[chunk][i])) {
        return targets[chunk][i];
      }
    }
    return next;
  }

  @Override
  public void returnResult(int chunk) {
    for (Message message : resultSends[chunk]) {
      startIfAny(message);
    }
    publish(sum.results());
  }

  @Override
  public boolean isResultReturned(int chunk) {
    for (Message message : resultSends[chunk]) {
      if (!isDone(message)) {
        return false;
      }
    }
    return true;
  }
}
