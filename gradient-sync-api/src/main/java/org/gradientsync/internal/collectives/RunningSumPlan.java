package org.gradientsync.internal.collectives;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.ReduceOp;
import org.gradientsync.internal.group.ProcessGroup;
import org.gradientsync.internal.host.HostBuffer;
import org.gradientsync.internal.host.HostDevice;
import org.gradientsync.internal.matching.SharedMemoryRendezvous;
import org.gradientsync.internal.ranks.Channel;
import org.gradientsync.internal.ranks.NodeLayout;
import org.gradientsync.internal.ranks.RankMap;
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
 * all links are busy at the same time.
 *
 * <p>Ranks are numbered node by node, so the additions are in rank order: the bits of all other
 * reducers. Each node sends and receives every element twice, the first and the last one once,
 * however many ranks they have. Sums travel in the {@linkplain
 * org.gradientsync.DataType#accumulator accumulator's type}, results in the buffer's.
 */
final class RunningSumPlan implements Message {
  /** The number of chunks whose sums a carrier holds at the same time. */
  static final int SLOTS = 4;

  private final ProcessGroup group;
  private final HostDevice device;
  private final NodeMates mates;
  private final SharedMemoryRendezvous board;
  private final NodeBuffers.Mapped buffers;
  private final Shards shards;
  private final int[] local; // the ranks of this node
  private final int rail; // this rank's number on its node, and its shard if there are so many
  private final int chunks; // of this rank's shard; 0 if it carries none
  private final int previous; // the carrier on the node before, or NO_RANK
  private final int next; // the carrier on the node after, or NO_RANK
  private final Message[] sumReceives;
  private final Message[] sumSends;
  private final Message[] resultReceives;
  private final Message[] resultSends;
  private final DeviceBuffer[] sums;
  private final DeviceBuffer[][] contributions;

  private final int[] chunksOf; // each shard
  private final List<Message> messages = new ArrayList<>();

  private final int[] copied; // chunks of each shard that this rank has
  private ReduceOp op;
  private long base; // the chunks that each rank has published before this call
  private int posted; // receives of sums
  private int added; // sums
  private int sent; // sums
  private int results; // complete chunks of this rank's shard
  private int returned; // results that were sent back

  /**
   * @param buffers the buffers of this node's ranks
   * @param shards one for each carrier of a node
   * @param scratch room for {@link #SLOTS} chunks of the accumulator's type
   */
  RunningSumPlan(
      ProcessGroup group,
      HostDevice device,
      NodeLayout layout,
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
    chunksOf = new int[shards.ranks()];
    for (int shard = 0; shard < chunksOf.length; shard++) {
      while (chunksOf[shard] < shards.chunks() && shards.length(shard, chunksOf[shard]) > 0) {
        chunksOf[shard]++;
      }
    }
    chunks = rail < chunksOf.length ? chunksOf[rail] : 0;
    previous = carrier(layout, layout.node() - 1);
    next = carrier(layout, layout.node() + 1);
    sumReceives = new Message[chunks];
    sumSends = new Message[chunks];
    resultReceives = new Message[chunks];
    resultSends = new Message[chunks];
    sums = new DeviceBuffer[chunks];
    contributions = new DeviceBuffer[chunks][local.length];
    for (int chunk = 0; chunk < chunks; chunk++) {
      prepare(chunk, scratch);
    }
  }

  private int carrier(NodeLayout layout, int node) {
    return chunks > 0 && node >= 0 && node < layout.nodes()
        ? layout.ranksOf(node).get(rail)
        : RankMap.NO_RANK;
  }

  private void prepare(int chunk, DeviceBuffer scratch) {
    long first = shards.first(rail, chunk);
    long length = shards.length(rail, chunk);
    for (int mate = 0; mate < local.length; mate++) {
      contributions[chunk][mate] = buffers.of(mate).slice(first, length);
    }
    DeviceBuffer result = contributions[chunk][rail];
    if (previous != RankMap.NO_RANK) {
      resultSends[chunk] = message(result, previous, Channel.GATHER, true);
    }
    if (next != RankMap.NO_RANK) {
      resultReceives[chunk] = message(result, next, Channel.GATHER, false);
    }
    int same = chunk - SLOTS;
    if (same >= 0 && length == shards.chunk()) {
      sums[chunk] = sums[same];
      sumReceives[chunk] = sumReceives[same];
      sumSends[chunk] = sumSends[same];
      return;
    }
    sums[chunk] = scratch.slice(chunk % SLOTS * shards.chunk(), length);
    if (previous != RankMap.NO_RANK) {
      sumReceives[chunk] = message(sums[chunk], previous, Channel.SCATTER, false);
    }
    if (next != RankMap.NO_RANK) {
      sumSends[chunk] = message(sums[chunk], next, Channel.SCATTER, true);
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
    posted = 0;
    added = 0;
    sent = 0;
    results = 0;
    returned = 0;
    Arrays.fill(copied, 0);
    while (!isDone()) {
      if (!carry() & !copy()) {
        group.await(this, awaited());
      }
    }
    mates.finishReading();
    return base + shards.chunks();
  }

  private boolean isDone() {
    return results == chunks && sent == chunks && returned == chunks && lacking() < 0;
  }

  /** A shard of which this rank lacks chunks, or a negative number. */
  private int lacking() {
    for (int shard = 0; shard < copied.length; shard++) {
      if (shard != rail && copied[shard] < chunksOf[shard]) {
        return shard;
      }
    }
    return -1;
  }

  /**
   * The rank that this one waits for. A node that returns no results cannot keep the node before
   * from sending sums, so a missing sum is looked at first.
   */
  private int awaited() {
    if (added < posted && previous != RankMap.NO_RANK) {
      return previous;
    }
    if (results < chunks) {
      return next;
    }
    int owner = lacking();
    return owner >= 0 ? local[owner] : sent < chunks ? next : previous;
  }

  /** Moves this rank's shard. Returns whether anything has moved. */
  private boolean carry() {
    int before = posted + added + sent + results + returned;
    while (posted < chunks && posted - sent < SLOTS) {
      if (previous != RankMap.NO_RANK) {
        sumReceives[posted].start();
      }
      posted++;
    }
    if (sumIsThere()) {
      add(added++);
    }
    while (sumIsSent()) {
      sent++;
    }
    while (resultIsThere()) {
      complete(results++);
    }
    while (resultIsReturned()) {
      returned++;
    }
    return posted + added + sent + results + returned > before;
  }

  private boolean sumIsThere() {
    return added < posted && (previous == RankMap.NO_RANK || sumReceives[added].test());
  }

  private boolean sumIsSent() {
    return sent < added && (next == RankMap.NO_RANK || sumSends[sent].test());
  }

  private boolean resultIsThere() {
    return results < added && (next == RankMap.NO_RANK || resultReceives[results].test());
  }

  private boolean resultIsReturned() {
    return returned < results && (previous == RankMap.NO_RANK || resultSends[returned].test());
  }

  private void add(int chunk) {
    DeviceBuffer running = previous == RankMap.NO_RANK ? null : sums[chunk];
    DeviceBuffer[] sources = contributions[chunk];
    if (next == RankMap.NO_RANK) {
      device.finish(running, sources, sources[rail], op, group.size());
    } else {
      device.accumulate(running, sources, sums[chunk], op);
    }
    mates.requireNoneGaveUp(null); // before what was read from its memory leaves the node
    if (next != RankMap.NO_RANK) {
      resultReceives[chunk].start();
      sumSends[chunk].start();
    }
  }

  private void complete(int chunk) {
    board.publish(base + chunk + 1);
    if (previous != RankMap.NO_RANK) {
      resultSends[chunk].start();
    }
  }

  /** Copies one chunk of each other shard that is there. Returns whether there was one. */
  private boolean copy() {
    boolean any = false;
    for (int shard = 0; shard < copied.length; shard++) {
      if (isPublished(shard)) {
        int chunk = copied[shard]++;
        HostBuffer source = buffers.of(shard);
        buffers.of(rail).copyRange(shards.first(shard, chunk), source, shards.length(shard, chunk));
        any = true;
      }
    }
    return any;
  }

  private boolean isPublished(int shard) {
    return shard != rail
        && copied[shard] < chunksOf[shard]
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

  /** Whether anything can move. */
  @Override
  public boolean test() {
    return sumIsThere() || sumIsSent() || resultIsThere() || resultIsReturned() || anyIsPublished();
  }

  @Override
  public void close() {
    Resources.closeAll(() -> Resources.closeAll(messages), buffers);
  }
}
