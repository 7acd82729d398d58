package org.gradientsync.core.collectives.nodes;

import org.gradientsync.DeviceBuffer;
import org.gradientsync.SumOrder;
import org.gradientsync.core.collectives.messages.Shards;
import org.gradientsync.core.collectives.shared.NodeBuffers;
import org.gradientsync.core.ranks.Channel;
import org.gradientsync.core.ranks.RankMap;
import org.gradientsync.spi.Message;

/**
 * A reduction over several nodes by a running sum. Where its results go is left to subclasses.
 *
 * <p>A carrier receives the sum over all ranks of the nodes before, adds the contributions of its
 * own node in rank order, and sends the sum to the next node. The last node's carrier rounds the
 * sum. A shard moves in chunks, so all links are busy at the same time; {@link ChunkOrder} has the
 * order. With {@link SumOrder#RANKS}, every sum begins on the first node. Ranks are numbered node
 * by node, so the additions are in rank order: the bits of all other reducers. With {@link
 * SumOrder#ANY}, the chunks begin on all nodes in turn, so the nodes share the load.
 *
 * <p>Sums travel in the {@linkplain org.gradientsync.DataType#accumulator accumulator's type},
 * results in the buffer's.
 */
abstract class SumPlan extends CarrierPlan implements RunningSum.Steps {
  private static final int MIN_SLOTS = 4;

  final int chunks; // that this rank carries
  final int previous; // the carrier on the node before
  final int next; // the carrier on the node after
  final ChunkOrder order; // null if this rank carries none
  final int slots;
  final RunningSum sum; // null if this rank carries none
  final Message[] resultReceives;
  private final Message[] sumReceives;
  private final Message[] sumSends;
  private final DeviceBuffer[] sums;
  private final DeviceBuffer[][] contributions;
  private final DeviceBuffer[] results; // of chunks whose sum this rank completes

  /**
   * @param chunks the number of chunks that this rank carries
   */
  SumPlan(
      TwoLevelRanks ranks,
      SumOrder sumOrder,
      NodeBuffers.Mapped buffers,
      Shards shards,
      int chunks) {
    super(ranks, buffers, shards);
    int nodes = layout.nodes();
    this.chunks = chunks;
    order = chunks > 0 ? new ChunkOrder(chunks, nodes, layout.node(), sumOrder) : null;
    slots = slots(sumOrder, nodes);
    sum = order == null ? null : new RunningSum(order, slots, this);
    previous = carrierOf((layout.node() + nodes - 1) % nodes);
    next = carrierOf((layout.node() + 1) % nodes);
    sumReceives = new Message[chunks];
    sumSends = new Message[chunks];
    resultReceives = new Message[chunks];
    sums = new DeviceBuffer[chunks];
    contributions = new DeviceBuffer[chunks][];
    results = new DeviceBuffer[chunks];
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

  /** Sets the elements of a chunk, before {@link #prepareSums}. */
  final void prepare(int chunk, long first, long length, DeviceBuffer result) {
    contributions[chunk] = contributions(first, length);
    results[chunk] = result;
  }

  /** Sends a result, once it is there, in the place of a sum to the next node. */
  final void sendCompleted(int chunk, Message message) {
    sumSends[chunk] = message;
  }

  /** The part of this rank's own buffer that is a chunk. */
  final DeviceBuffer own(int chunk) {
    return contributions[chunk][localRank];
  }

  /** Makes the messages of sums. All full chunks in a slot share them. */
  final void prepareSums(DeviceBuffer scratch) {
    Message[] receives = new Message[slots];
    Message[] sends = new Message[slots];
    for (int i = 0; i < chunks; i++) {
      int chunk = order.sum(i);
      int slot = i % slots;
      long length = own(chunk).count();
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
  final void begin() {
    if (sum != null) {
      sum.begin();
    }
  }

  @Override
  final boolean advance() {
    return sum != null && sum.advance();
  }

  @Override
  final boolean canAdvance() {
    return sum != null && sum.canAdvance();
  }

  @Override
  final boolean isCarried() {
    return sum == null || sum.isDone();
  }

  @Override
  public final void expectSum(int chunk) {
    startIfAny(sumReceives[chunk]);
  }

  @Override
  public final boolean isSumThere(int chunk) {
    return isDone(sumReceives[chunk]);
  }

  @Override
  public final void add(int chunk) {
    DeviceBuffer running = order.isFirst(chunk) ? null : sums[chunk];
    DeviceBuffer[] sources = contributions[chunk];
    if (order.isLast(chunk)) {
      device.finish(running, sources, results[chunk], op(), group.size());
    } else {
      device.accumulate(running, sources, sums[chunk], op());
    }
    nodeRanks.requireNoneGaveUp(null); // before what was read from its memory leaves the node
    startIfAny(sumSends[chunk]);
  }

  @Override
  public final boolean isSumSent(int chunk) {
    return isDone(sumSends[chunk]);
  }

  @Override
  public final void expectResult(int chunk) {
    startIfAny(resultReceives[chunk]);
  }

  @Override
  public final boolean isResultThere(int chunk) {
    return isDone(resultReceives[chunk]);
  }
}
