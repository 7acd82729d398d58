package org.gradientsync.core.collectives.nodes;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.ReduceOp;
import org.gradientsync.core.collectives.messages.BufferMessages;
import org.gradientsync.core.collectives.messages.Shards;
import org.gradientsync.core.collectives.shared.NodeBuffers;
import org.gradientsync.core.collectives.shared.NodeRanks;
import org.gradientsync.core.group.ProcessGroup;
import org.gradientsync.core.host.HostDevice;
import org.gradientsync.core.ranks.NodeLayout;
import org.gradientsync.core.ranks.RankMap;
import org.gradientsync.core.rendezvous.SharedMemoryRendezvous;
import org.gradientsync.spi.Message;
import org.gradientsync.spi.Resources;

/**
 * One call over several nodes, prepared once and run many times: what all algorithms have in common
 * within a node.
 *
 * <p>The buffer is divided into as many shards as the smallest node has ranks. On each node, the
 * rank with the shard's number carries it: it exchanges messages with the carriers of other nodes,
 * and in a reduction adds the contributions of its node, in place in their memory. What the other
 * ranks of its node need it publishes piece by piece, and they copy it from its buffer.
 */
abstract class CarrierPlan implements Message {
  final ProcessGroup group;
  final HostDevice device;
  final NodeLayout layout;
  final NodeRanks nodeRanks;
  final NodeBuffers.Mapped buffers;
  final Shards shards;
  final int localRank; // this rank's number on its node, and its shard if it carries one
  final int localSize; // the ranks of this node
  private final SharedMemoryRendezvous board;
  private final List<Message> messages = new ArrayList<>();
  private final long[][] firsts; // of each shard, the first element of each piece
  private final long[][] lengths;
  private final int[] copied; // pieces of each shard
  private ReduceOp op;
  private long base; // the pieces that were published before this run
  private int waitedFor; // by the last wait

  /**
   * @param buffers the buffers of this node's ranks
   * @param shards one for each carrier of a node
   */
  CarrierPlan(TwoLevelRanks ranks, NodeBuffers.Mapped buffers, Shards shards) {
    group = ranks.group();
    device = ranks.device();
    layout = ranks.layout();
    nodeRanks = ranks.nodeRanks();
    board = ranks.board();
    this.buffers = buffers;
    this.shards = shards;
    localRank = layout.localRank();
    localSize = layout.ranksOf(layout.node()).size();
    firsts = new long[shards.ranks()][0];
    lengths = new long[shards.ranks()][0];
    copied = new int[shards.ranks()];
  }

  /** The number of chunks that this rank carries. */
  final int ownChunks() {
    return shards.chunksOf(localRank);
  }

  /**
   * Divides a shard into pieces, in the order in which its carrier has their results. Without
   * pieces, the other ranks of the node copy nothing.
   *
   * @param first the first element of each in the buffer
   * @param length the number of elements of each; may be 0
   */
  final void divide(int shard, long[] first, long[] length) {
    firsts[shard] = first;
    lengths[shard] = length;
  }

  /** The carrier of this rank's shard on a node. */
  final int carrier(int node) {
    return layout.ranksOf(node).get(localRank);
  }

  /** The same part of the buffers of all ranks of this node. */
  final DeviceBuffer[] contributions(long first, long length) {
    DeviceBuffer[] slices = new DeviceBuffer[localSize];
    for (int local = 0; local < slices.length; local++) {
      slices[local] = buffers.of(local).slice(first, length);
    }
    return slices;
  }

  /** A message that this plan closes; null if it would be empty. */
  final Message message(DeviceBuffer run, int peer, int channel, boolean sends) {
    if (run.count() == 0) {
      return null;
    }
    Message message =
        BufferMessages.message(
            group.messages(), run, BufferMessages.view(run), peer, channel, sends);
    messages.add(message);
    return message;
  }

  static void startIfAny(Message message) {
    if (message != null) {
      message.start();
    }
  }

  static boolean isDone(Message message) {
    return message == null || message.test();
  }

  /** The reduction of the current run. */
  final ReduceOp op() {
    return op;
  }

  /**
   * Shows results to the other ranks of this node.
   *
   * @param count the number of pieces of this rank's shard that are there
   */
  final void publish(int count) {
    board.publish(base + count);
  }

  /** Whether the ranks of this node have announced the same buffers in the current call. */
  final boolean isValid() {
    return buffers.isValid();
  }

  /** Begins to carry anew. */
  abstract void begin();

  /** Takes steps with this rank's shard. Returns whether any was possible. */
  abstract boolean advance();

  /** Whether {@link #advance} can take a step. */
  abstract boolean canAdvance();

  /** Whether this rank has nothing more to carry. */
  abstract boolean isCarried();

  /** The rank whose message this one needs most, or a negative number if all have come. */
  abstract int awaitedSender();

  /** A rank that has to take a message of this one, if any has. */
  abstract int awaitedReceiver();

  /**
   * Runs the call after the rendezvous.
   *
   * @param publishedBefore the pieces that each rank of this node has published before
   * @return the pieces that each rank may have published after
   */
  final long run(ReduceOp newOp, long publishedBefore) {
    op = newOp;
    base = publishedBefore;
    begin();
    Arrays.fill(copied, 0);
    while (!isCarried() || lacking() >= 0) {
      if (!advance() & !copy()) {
        waitedFor = awaited();
        board.waitFor(waitedFor);
        group.await(this, waitedFor);
        board.waitFor(RankMap.NO_RANK);
      }
    }
    nodeRanks.finishReading();
    long most = 0;
    for (long[] ofShard : firsts) {
      most = Math.max(most, ofShard.length);
    }
    return base + most;
  }

  /** A shard of which this rank lacks pieces, or a negative number. */
  private int lacking() {
    for (int shard = 0; shard < copied.length; shard++) {
      if (shard != localRank && copied[shard] < firsts[shard].length) {
        return shard;
      }
    }
    return -1;
  }

  /** The rank that this one waits for. A rank of this node may itself wait for another node. */
  private int awaited() {
    int sender = awaitedSender();
    if (sender >= 0) {
      return sender;
    }
    int owner = lacking();
    return owner >= 0 ? nodeRanks.toWaitFor(owner) : awaitedReceiver();
  }

  /** Copies one piece of each other shard that is there. Returns whether there was one. */
  private boolean copy() {
    boolean any = false;
    for (int shard = 0; shard < copied.length; shard++) {
      if (isPublished(shard)) {
        int piece = copied[shard]++;
        long first = firsts[shard][piece];
        buffers.of(localRank).copyRange(first, buffers.of(shard), lengths[shard][piece]);
        any = true;
      }
    }
    return any;
  }

  private boolean isPublished(int shard) {
    return shard != localRank
        && copied[shard] < firsts[shard].length
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

  /** Whether anything can move, or another rank is to be waited for. */
  @Override
  public final boolean test() {
    return canAdvance() || anyIsPublished() || awaited() != waitedFor;
  }

  @Override
  public final void close() {
    Resources.closeAll(() -> Resources.closeAll(messages), buffers);
  }
}
