package org.gradientsync.core.collectives.nodes;

import java.util.stream.IntStream;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.core.collectives.messages.Shards;
import org.gradientsync.core.collectives.shared.NodeBuffers;
import org.gradientsync.core.ranks.Channel;
import org.gradientsync.core.ranks.RankMap;
import org.gradientsync.spi.Message;

/**
 * A broadcast over several nodes. The carriers of the root's node copy their shards from the root's
 * memory. Shards pass from node to node along {@link ResultTrees}, so each node sends and receives
 * every element at most once, and has each chunk after about log M messages.
 */
final class BroadcastTreesPlan extends CarrierPlan {
  private final int chunks; // that this rank carries
  private final int[] sources; // by chunk; NO_RANK on the root's node
  private final int[][] targets;
  private final Message[] receives;
  private final Message[][] sends;
  private final Copies[] own; // of the root's memory
  private final int[] next = new int[ResultTrees.COUNT]; // the first chunk of each that is not here
  private int sent;

  /**
   * @param buffers of this node's ranks
   */
  BroadcastTreesPlan(TwoLevelRanks ranks, NodeBuffers.Mapped buffers, Shards shards, int root) {
    super(ranks, buffers, shards);
    chunks = ownChunks();
    sources = new int[chunks];
    targets = new int[chunks][];
    receives = new Message[chunks];
    sends = new Message[chunks][];
    own = new Copies[chunks];
    for (int shard = 0; shard < shards.ranks(); shard++) {
      divide(shard, group.rank() != root);
    }
    for (int chunk = 0; chunk < chunks; chunk++) {
      prepare(chunk, root);
    }
  }

  /** The root copies nothing. */
  private void divide(int shard, boolean copies) {
    long[] first = new long[shards.chunksOf(shard)];
    long[] length = new long[first.length];
    for (int i = 0; i < first.length; i++) {
      first[i] = shards.first(shard, i);
      length[i] = copies ? shards.length(shard, i) : 0;
    }
    divide(shard, first, length);
  }

  private void prepare(int chunk, int root) {
    int nodes = layout.nodes();
    int first = layout.nodeOf(root) + 1; // the trees begin at the last node
    ResultTrees trees = new ResultTrees(nodes, Math.floorMod(layout.node() - first, nodes));
    long place = shards.first(localRank, chunk);
    long length = shards.length(localRank, chunk);
    DeviceBuffer part = buffers.of(localRank).slice(place, length);
    int parent = trees.parent(chunk);
    sources[chunk] = parent < 0 ? RankMap.NO_RANK : carrier((parent + first) % nodes);
    own[chunk] = new Copies();
    if (parent >= 0) {
      receives[chunk] = message(part, sources[chunk], Channel.DATA, false);
    } else if (group.rank() != root) {
      own[chunk].add(buffers.of(layout.localRank(root)).slice(place, length), part);
    }
    targets[chunk] =
        IntStream.of(trees.children(chunk))
            .map(child -> carrier((child + first) % nodes))
            .toArray();
    sends[chunk] = new Message[targets[chunk].length];
    for (int i = 0; i < targets[chunk].length; i++) {
      sends[chunk][i] = message(part, targets[chunk][i], Channel.DATA, true);
    }
  }

  @Override
  void begin() {
    sent = 0;
    for (int tree = 0; tree < next.length; tree++) {
      next[tree] = tree;
    }
    for (Message receive : receives) {
      startIfAny(receive);
    }
  }

  @Override
  boolean advance() {
    boolean any = false;
    for (int tree = 0; tree < next.length; tree++) {
      if (hasNext(tree)) {
        take(next[tree]);
        next[tree] += next.length;
        publish(here());
        any = true;
      }
    }
    for (; isNextSent(); sent++) {
      any = true;
    }
    return any;
  }

  private void take(int chunk) {
    own[chunk].run();
    nodeRanks.requireNoneGaveUp(null); // before what was read from its memory leaves the node
    for (Message message : sends[chunk]) {
      startIfAny(message);
    }
  }

  private boolean hasNext(int tree) {
    return next[tree] < chunks && isDone(receives[next[tree]]);
  }

  /** The number of chunks up to the first one that is missing. */
  private int here() {
    return Math.min(chunks, Math.min(next[0], next[1]));
  }

  private boolean isNextSent() {
    return sent < here() && notTaken(sent) < 0;
  }

  /** A carrier that has not taken a chunk, or a negative number. */
  private int notTaken(int chunk) {
    for (int i = 0; i < sends[chunk].length; i++) {
      if (!isDone(sends[chunk][i])) {
        return targets[chunk][i];
      }
    }
    return RankMap.NO_RANK;
  }

  @Override
  boolean canAdvance() {
    return isNextSent() || hasNext(0) || hasNext(1);
  }

  @Override
  boolean isCarried() {
    return sent == chunks;
  }

  @Override
  int awaitedSender() {
    for (int chunk : next) {
      if (chunk < chunks && !isDone(receives[chunk])) {
        return sources[chunk];
      }
    }
    return RankMap.NO_RANK;
  }

  @Override
  int awaitedReceiver() {
    int receiver = sent < here() ? notTaken(sent) : RankMap.NO_RANK;
    return receiver < 0 ? group.rank() : receiver; // all have been taken since
  }
}
