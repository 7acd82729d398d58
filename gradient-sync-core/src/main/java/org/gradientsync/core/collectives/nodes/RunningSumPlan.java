package org.gradientsync.core.collectives.nodes;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.ReduceOp;
import org.gradientsync.SumOrder;
import org.gradientsync.core.collectives.messages.RunMessages;
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
import org.gradientsync.spi.Resources;

/**
 * One buffer's all-reduce over several nodes by a running sum, prepared once and run many times.
 *
 * <p>The buffer is divided into as many shards as the smallest node has ranks. On each node, the
 * rank with the shard's number carries it. It receives the sum over all ranks of the nodes before,
 * adds the contributions of its own node in rank order, in place in their memory, and sends the sum
 * to the next node. The last node's carrier rounds the sum, and the result returns from node to
 * node. The other ranks of a node copy it from their carrier's buffer. A shard moves in chunks, so
 * all links are busy at the same time; {@link ChunkOrder} has the order.
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
final class RunningSumPlan implements Message, RunningSum.Steps {
  private static final int MIN_SLOTS = 4;

  private final ProcessGroup group;
  private final HostDevice device;
  private final NodeMates mates;
  private final SharedMemoryRendezvous board;
  private final NodeBuffers.Mapped buffers;
  private final Shards shards;
  private final int[] local; // the ranks of this node
  private final int rail; // this rank's number on its node, and its shard if there are so many
  private final int chunks; // of this rank's shard; 0 if it carries none
  private final int previous; // the carrier on the node before
  private final int next; // the carrier on the node after
  private final ChunkOrder[] orders; // of each shard
  private final ChunkOrder order; // of this rank's shard, or null
  private final int slots;
  private final RunningSum sum; // of this rank's shard, or null
  private final Message[] sumReceives;
  private final Message[] sumSends;
  private final Message[] resultReceives;
  private final Message[] resultSends;
  private final DeviceBuffer[] sums;
  private final DeviceBuffer[][] contributions;
  private final List<Message> messages = new ArrayList<>();

  private final int[] copied; // chunks of each shard that this rank has
  private int waitedFor;
  private ReduceOp op;
  private long base; // the chunks that each rank has published before this call

  /**
   * @param sumOrder where sums begin
   * @param buffers the buffers of this node's ranks
   * @param shards one for each carrier of a node
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
    this.group = group;
    this.device = device;
    this.mates = mates;
    this.board = board;
    this.buffers = buffers;
    this.shards = shards;
    rail = layout.localRank();
    local = layout.ranksOf(layout.node()).stream().mapToInt(Integer::intValue).toArray();
    copied = new int[shards.ranks()];
    orders = new ChunkOrder[shards.ranks()];
    for (int shard = 0; shard < orders.length; shard++) {
      orders[shard] = new ChunkOrder(chunksOf(shard), layout.nodes(), layout.node(), sumOrder);
    }
    order = rail < orders.length ? orders[rail] : null;
    chunks = order == null ? 0 : order.chunks();
    slots = slots(sumOrder, layout.nodes());
    sum = order == null ? null : new RunningSum(order, slots, this);
    int nodes = layout.nodes();
    previous = carrier(layout, (layout.node() + nodes - 1) % nodes);
    next = carrier(layout, (layout.node() + 1) % nodes);
    sumReceives = new Message[chunks];
    sumSends = new Message[chunks];
    resultReceives = new Message[chunks];
    resultSends = new Message[chunks];
    sums = new DeviceBuffer[chunks];
    contributions = new DeviceBuffer[chunks][local.length];
    for (int i = 0; i < chunks; i++) {
      prepareResult(i);
    }
    prepareSums(scratch);
  }

  /**
   * The number of chunks whose sums a carrier holds at the same time. It must have room for a sum
   * that the node before sends although this node has not come as far, because sends may wait for
   * their receives. See {@link ChunkOrder#ahead}.
   */
  static int slots(SumOrder order, int nodes) {
    return Math.max(MIN_SLOTS, ChunkOrder.ahead(order, nodes));
  }

  private int chunksOf(int shard) {
    int count = 0;
    while (count < shards.chunks() && shards.length(shard, count) > 0) {
      count++;
    }
    return count;
  }

  private int carrier(NodeLayout layout, int node) {
    return chunks > 0 ? layout.ranksOf(node).get(rail) : RankMap.NO_RANK;
  }

  private void prepareResult(int chunk) {
    long first = shards.first(rail, chunk);
    long length = shards.length(rail, chunk);
    for (int mate = 0; mate < local.length; mate++) {
      contributions[chunk][mate] = buffers.of(mate).slice(first, length);
    }
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

  private Message message(DeviceBuffer run, int peer, int channel, boolean sends) {
    ByteBuffer view = RunMessages.view(run);
    Message message = RunMessages.message(group.messages(), run, view, peer, channel, sends);
    messages.add(message);
    return message;
  }

  /** Whether the ranks of this node have announced the same buffers in the current call. */
  boolean isValid() {
    return buffers.isValid();
  }

  /**
   * Runs the all-reduce after the rendezvous.
   *
   * @param publishedBefore the chunks that each rank of this node has published before
   * @return the chunks that each rank may have published after
   */
  long run(ReduceOp newOp, long publishedBefore) {
    op = newOp;
    base = publishedBefore;
    if (sum != null) {
      sum.begin();
    }
    Arrays.fill(copied, 0);
    while (!isDone()) {
      if (!carry() & !copy()) {
        waitedFor = awaited();
        board.waitFor(waitedFor);
        group.await(this, waitedFor);
        board.waitFor(RankMap.NO_RANK);
      }
    }
    mates.finishReading();
    return base + shards.chunks();
  }

  private boolean isDone() {
    return (sum == null || sum.isDone()) && lacking() < 0;
  }

  /** A shard of which this rank lacks chunks, or a negative number. */
  private int lacking() {
    for (int shard = 0; shard < copied.length; shard++) {
      if (shard != rail && copied[shard] < orders[shard].chunks()) {
        return shard;
      }
    }
    return -1;
  }

  /**
   * The rank that this one waits for. A node that returns no results cannot keep the node before
   * from sending sums, so a missing sum is looked at first. A rank of this node may itself wait for
   * another node.
   */
  private int awaited() {
    if (sum != null && sum.isExpectingSum()) {
      return previous;
    }
    if (sum != null && !sum.hasAllResults()) {
      return next;
    }
    int owner = lacking();
    if (owner >= 0) {
      int further = board.waitsFor(owner);
      return further == RankMap.NO_RANK || further == group.rank() ? local[owner] : further;
    }
    return sum != null && !sum.hasSentAll() ? next : previous;
  }

  /** Moves this rank's shard. Returns whether anything has moved. */
  private boolean carry() {
    return sum != null && sum.advance();
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
    board.publish(base + sum.results());
  }

  @Override
  public boolean isResultReturned(int chunk) {
    return isDone(resultSends[chunk]);
  }

  private static void startIfAny(Message message) {
    if (message != null) {
      message.start();
    }
  }

  private static boolean isDone(Message message) {
    return message == null || message.test();
  }

  @Override
  public void add(int chunk) {
    DeviceBuffer running = order.isFirst(chunk) ? null : sums[chunk];
    DeviceBuffer[] sources = contributions[chunk];
    if (order.isLast(chunk)) {
      device.finish(running, sources, sources[rail], op, group.size());
    } else {
      device.accumulate(running, sources, sums[chunk], op);
    }
    mates.requireNoneGaveUp(null); // before what was read from its memory leaves the node
    startIfAny(sumSends[chunk]);
  }

  /** Copies one chunk of each other shard that is there. Returns whether there was one. */
  private boolean copy() {
    boolean any = false;
    for (int shard = 0; shard < copied.length; shard++) {
      if (isPublished(shard)) {
        int chunk = orders[shard].result(copied[shard]++);
        buffers
            .of(rail)
            .copyRange(shards.first(shard, chunk), buffers.of(shard), shards.length(shard, chunk));
        any = true;
      }
    }
    return any;
  }

  private boolean isPublished(int shard) {
    return shard != rail
        && copied[shard] < orders[shard].chunks()
        && board.published(shard) > base + copied[shard];
  }

  private boolean anyIsPublished() {
    for (int shard = 0; shard < copied.length; shard++) {
      if (isPublished(shard)) {
        return true;
      }
    }
    return false;
  }

  @Override
  public void start() {
    // run starts the messages
  }

  /** Whether anything can move, or another rank is to be waited for. */
  @Override
  public boolean test() {
    return sum != null && sum.canAdvance() || anyIsPublished() || awaited() != waitedFor;
  }

  @Override
  public void close() {
    Resources.closeAll(() -> Resources.closeAll(messages), buffers);
  }
}
