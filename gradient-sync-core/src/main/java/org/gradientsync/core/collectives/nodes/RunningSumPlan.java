package org.gradientsync.core.collectives.nodes;

import org.gradientsync.DeviceBuffer;
import org.gradientsync.SumOrder;
import org.gradientsync.core.collectives.messages.Shards;
import org.gradientsync.core.collectives.shared.NodeBuffers;
import org.gradientsync.core.collectives.shared.NodeMates;
import org.gradientsync.core.group.ProcessGroup;
import org.gradientsync.core.host.HostDevice;
import org.gradientsync.core.ranks.Channel;
import org.gradientsync.core.ranks.NodeLayout;
import org.gradientsync.core.ranks.RankMap;
import org.gradientsync.core.rendezvous.SharedMemoryRendezvous;
import org.gradientsync.spi.Message;

/**
 * An all-reduce over several nodes by a running sum.
 *
 * <p>A carrier receives the sum over all ranks of the nodes before, adds the contributions of its
 * own node in rank order, and sends the sum to the next node. The last node's carrier rounds the
 * sum, and the result returns from node to node. A shard moves in chunks, so all links are busy at
 * the same time; {@link ChunkOrder} has the order.
 *
 * <p>With {@link SumOrder#RANKS}, every sum begins on the first node. Ranks are numbered node by
 * node, so the additions are in rank order: the bits of all other reducers. Each node sends and
 * receives every element twice, the first and the last one once, however many ranks they have. With
 * {@link SumOrder#ANY}, the chunks begin on all nodes in turn, so the nodes share the load: (M-1)/M
 * times twice, on M nodes.
 *
 * <p>Sums travel in the {@linkplain org.gradientsync.DataType#accumulator accumulator's type},
 * results in the buffer's.
 */
final class RunningSumPlan extends CarrierPlan implements RunningSum.Steps {
  private static final int MIN_SLOTS = 4;

  private final int chunks; // of this rank's shard; 0 if it carries none
  private final int previous; // the carrier on the node before
  private final int next; // the carrier on the node after
  private final ChunkOrder order; // of this rank's shard, or null
  private final int slots;
  private final RunningSum sum; // of this rank's shard, or null
  private final Message[] sumReceives;
  private final Message[] sumSends;
  private final Message[] resultReceives;
  private final Message[] resultSends;
  private final DeviceBuffer[] sums;
  private final DeviceBuffer[][] contributions;

  /**
   * @param sumOrder where sums begin
   * @param scratch room for {@link #slots} chunks of the accumulator's type
   */
  RunningSumPlan(
      ProcessGroup group,
      HostDevice device,
      NodeLayout layout,
      SumOrder sumOrder,
      NodeMates mates,
      SharedMemoryRendezvous board,
      NodeBuffers.Mapped buffers,
      Shards shards,
      DeviceBuffer scratch) {
    super(group, device, layout, mates, board, buffers, shards);
    int nodes = layout.nodes();
    for (int shard = 0; shard < shards.ranks(); shard++) {
      divide(shard, new ChunkOrder(chunksOf(shard), nodes, layout.node(), sumOrder));
    }
    chunks = ownChunks();
    order = chunks > 0 ? new ChunkOrder(chunks, nodes, layout.node(), sumOrder) : null;
    slots = slots(sumOrder, nodes);
    sum = order == null ? null : new RunningSum(order, slots, this);
    previous = carrierOf((layout.node() + nodes - 1) % nodes);
    next = carrierOf((layout.node() + 1) % nodes);
    sumReceives = new Message[chunks];
    sumSends = new Message[chunks];
    resultReceives = new Message[chunks];
    resultSends = new Message[chunks];
    sums = new DeviceBuffer[chunks];
    contributions = new DeviceBuffer[chunks][];
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

  /**
   * The number of chunks whose sums a carrier holds at the same time. It must have room for a sum
   * that the node before sends although this node has not come as far, because sends may wait for
   * their receives. See {@link ChunkOrder#ahead}.
   */
  static int slots(SumOrder order, int nodes) {
    return Math.max(MIN_SLOTS, ChunkOrder.ahead(order, nodes));
  }

  private int carrierOf(int node) {
    return chunks > 0 ? carrier(node) : RankMap.NO_RANK;
  }

  private void prepareResult(int chunk) {
    contributions[chunk] = contributions(shards.first(rail, chunk), shards.length(rail, chunk));
    DeviceBuffer result = contributions[chunk][rail];
    if (!order.isFirst(chunk)) {
      resultSends[chunk] = message(result, previous, Channel.GATHER, true);
    }
    if (!order.isLast(chunk)) {
      resultReceives[chunk] = message(result, next, Channel.GATHER, false);
    }
  }

  /** All full chunks in a slot share its messages. */
  private void prepareSums(DeviceBuffer scratch) {
    Message[] receives = new Message[slots];
    Message[] sends = new Message[slots];
    for (int i = 0; i < chunks; i++) {
      int chunk = order.sum(i);
      int slot = i % slots;
      long length = shards.length(rail, chunk);
      boolean full = length == shards.chunk();
      sums[chunk] = scratch.slice(slot * shards.chunk(), length);
      if (!order.isFirst(chunk)) {
        sumReceives[chunk] =
            full && receives[slot] != null
                ? receives[slot]
                : message(sums[chunk], previous, Channel.SCATTER, false);
        receives[slot] = full ? sumReceives[chunk] : receives[slot];
      }
      if (!order.isLast(chunk)) {
        sumSends[chunk] =
            full && sends[slot] != null
                ? sends[slot]
                : message(sums[chunk], next, Channel.SCATTER, true);
        sends[slot] = full ? sumSends[chunk] : sends[slot];
      }
    }
  }

  @Override
  void begin() {
    if (sum != null) {
      sum.begin();
    }
  }

  @Override
  boolean advance() {
    return sum != null && sum.advance();
  }

  @Override
  boolean canAdvance() {
    return sum != null && sum.canAdvance();
  }

  @Override
  boolean isCarried() {
    return sum == null || sum.isDone();
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
  public void expectSum(int chunk) {
    startIfAny(sumReceives[chunk]);
  }

  @Override
  public boolean isSumThere(int chunk) {
    return isDone(sumReceives[chunk]);
  }

  @Override
  public boolean isSumSent(int chunk) {
    return isDone(sumSends[chunk]);
  }

  @Override
  public void expectResult(int chunk) {
    startIfAny(resultReceives[chunk]);
  }

  @Override
  public boolean isResultThere(int chunk) {
    return isDone(resultReceives[chunk]);
  }

  @Override
  public void returnResult(int chunk) {
    startIfAny(resultSends[chunk]);
    publish(sum.results());
  }

  @Override
  public boolean isResultReturned(int chunk) {
    return isDone(resultSends[chunk]);
  }

  @Override
  public void add(int chunk) {
    DeviceBuffer running = order.isFirst(chunk) ? null : sums[chunk];
    DeviceBuffer[] sources = contributions[chunk];
    if (order.isLast(chunk)) {
      device.finish(running, sources, sources[rail], op(), group.size());
    } else {
      device.accumulate(running, sources, sums[chunk], op());
    }
    mates.requireNoneGaveUp(null); // before what was read from its memory leaves the node
    startIfAny(sumSends[chunk]);
  }
}
