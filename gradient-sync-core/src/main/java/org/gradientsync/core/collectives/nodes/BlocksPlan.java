package org.gradientsync.core.collectives.nodes;

import java.util.ArrayList;
import java.util.List;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.core.collectives.messages.Shards;
import org.gradientsync.core.collectives.shared.NodeBuffers;
import org.gradientsync.core.ranks.Channel;
import org.gradientsync.core.ranks.RankMap;
import org.gradientsync.spi.Message;

/**
 * A collective over several nodes in which each node owns a block of each column of a shard. How
 * the owners get what they need is left to subclasses. In an all-reduce, all gather the results by
 * doubling, as {@link HalvingRounds} say; {@link ColumnSteps} say in which order.
 *
 * <p>A reduce-scatter and an all-to-all have an output, and gather nothing. The nodes have equally
 * many ranks, and a rank's shard consists of the blocks of the ranks with its number on all nodes.
 */
abstract class BlocksPlan extends CarrierPlan implements ColumnSteps.Steps {
  private static final int PIECES = 4; // of a column, for the other ranks of the node

  final int nodes;
  final HalvingRounds geometry;
  private final DeviceBuffer out; // null if the results are gathered
  private final int reductions; // rounds of messages until the owners have the sums
  private final int rounds; // to gather
  private final ColumnSteps steps; // null if this rank carries nothing
  private final Column[] columns;

  /** The results of a column. */
  private final class Column {
    private final Message[][] receives; // by round
    private final Message[][] sends;

    Column(int index) {
      Blocks blocks = blocks(index);
      long first = shards.first(localRank, index);
      receives = new Message[rounds][];
      sends = new Message[rounds][];
      for (int round = 0; round < rounds; round++) {
        int keep = geometry.keep(round);
        int above = carrier(geometry.above(round));
        int below = carrier(geometry.below(round));
        receives[round] = results(blocks, first, keep, geometry.size(round), above, false);
        sends[round] = results(blocks, first, 0, geometry.sent(round), below, true);
      }
    }

    private Message[] results(
        Blocks blocks, long first, int from, int to, int peer, boolean sending) {
      List<Message> messages = new ArrayList<>();
      for (int at = from, end; at < to; at = end) {
        end = blocks.pieceEnd(at, to);
        DeviceBuffer run =
            buffers.of(localRank).slice(first + blocks.first(at), blocks.length(at, end));
        Message message = message(run, peer, Channel.GATHER, sending);
        if (message != null) {
          messages.add(message);
        }
      }
      return messages.toArray(Message[]::new);
    }
  }

  /**
   * @param shards a carrier's chunks are its columns
   * @param out where this rank's block goes, or null in an all-reduce
   * @param reductions the number of rounds of messages until the owners have the sums
   */
  BlocksPlan(
      TwoLevelRanks ranks,
      NodeBuffers.Mapped buffers,
      Shards shards,
      DeviceBuffer out,
      int reductions) {
    super(ranks, buffers, shards);
    this.out = out;
    this.reductions = reductions;
    nodes = layout.nodes();
    geometry = new HalvingRounds(nodes, layout.node());
    rounds = out == null ? geometry.count() : 0;
    for (int shard = 0; shard < shards.ranks() && out == null; shard++) {
      divide(shard);
    }
    columns = new Column[ownChunks()];
    for (int i = 0; i < columns.length; i++) {
      columns[i] = new Column(i);
    }
    steps = columns.length == 0 ? null : new ColumnSteps(columns.length, reductions + rounds, this);
  }

  /** Of each column what comes before the last round, then the rest; each in up to two pieces. */
  private void divide(int shard) {
    int count = shards.chunksOf(shard);
    long[] first = new long[PIECES * count];
    long[] length = new long[PIECES * count];
    int keep = geometry.keep(0);
    for (int i = 0; i < first.length; i++) {
      int column = i / PIECES;
      Blocks blocks = new Blocks(shards.length(shard, column), nodes, geometry.node());
      boolean late = i % PIECES >= PIECES / 2;
      int from = late ? keep : 0;
      int to = late ? nodes : keep;
      int end = blocks.pieceEnd(from, to);
      boolean second = i % 2 == 1;
      first[i] = shards.first(shard, column) + blocks.first(second ? end : from);
      length[i] = second ? blocks.length(end, to) : blocks.length(from, end);
    }
    divide(shard, first, length);
  }

  /** The blocks of a column of this rank's shard. */
  final Blocks blocks(int column) {
    return new Blocks(shards.length(localRank, column), nodes, geometry.node());
  }

  /** The first element of a block of a column in the ranks' buffers. */
  final long first(int column, int block) {
    long first = shards.first(localRank, column);
    return out == null
        ? first + blocks(column).first(block)
        : (geometry.node() + block) % nodes * (shards.count() / nodes) + first / nodes;
  }

  /** The last of some blocks of a column that lie in one piece in the ranks' buffers. */
  final int pieceEnd(int column, int from, int to) {
    return out == null ? blocks(column).pieceEnd(from, to) : from + 1;
  }

  /** This node's block of a column, in a rank's buffer of this node. */
  final DeviceBuffer ownBlock(int column, int local) {
    return buffers.of(local).slice(first(column, 0), blocks(column).length(0, 1));
  }

  /** Where the result of this node's block of a column goes. */
  final DeviceBuffer result(int column) {
    return out == null ? ownBlock(column, localRank) : ofOutput(0, column);
  }

  /** A column's part of a block of the output. */
  final DeviceBuffer ofOutput(int block, int column) {
    long place = shards.first(localRank, column) - shards.first(localRank, 0);
    long all = shards.count() / nodes / shards.ranks();
    return out.slice(block * all + place / nodes, blocks(column).length(0, 1));
  }

  /** Adds what this node has, and begins to send; there are messages to receive. */
  abstract void beginColumn(int column);

  /** Whether the messages of a round of the reduction have come. */
  abstract boolean hasReceived(int column, int round);

  /**
   * Handles the messages of a round of the reduction. After the last one, {@link #result} is there,
   * and no contribution is needed any more.
   */
  abstract void reduce(int column, int round);

  /** Whether the messages of the reduction are sent. */
  abstract boolean hasSent(int column);

  /** The node from which a message of a round is missing. */
  abstract int awaitedInRound(int column, int round);

  /** A node that has not taken a message of the reduction, or a negative number. */
  abstract int notTaken(int column);

  @Override
  final void begin() {
    if (steps != null) {
      steps.begin();
    }
  }

  @Override
  final boolean advance() {
    if (steps == null || !steps.advance()) {
      return false;
    }
    if (out == null) {
      publish(PIECES / 2 * steps.halves());
    }
    return true;
  }

  @Override
  final boolean canAdvance() {
    return steps != null && steps.canAdvance();
  }

  @Override
  final boolean isCarried() {
    return steps == null || steps.isDone();
  }

  @Override
  final int awaitedSender() {
    int step = steps == null ? -1 : steps.awaited();
    if (step < 1) {
      return RankMap.NO_RANK;
    }
    return carrier(
        step <= reductions
            ? awaitedInRound(steps.oldest(), step - 1)
            : geometry.above(gathering(step)));
  }

  /** The round of results that a step handles: they are gathered backwards. */
  private int gathering(int step) {
    return reductions + rounds - step;
  }

  @Override
  final int awaitedReceiver() {
    if (steps == null) {
      return group.rank(); // carries nothing, so never waits for this
    }
    int column = steps.left();
    int node = notTaken(column);
    for (int round = 0; round < rounds && node < 0; round++) {
      node = areDone(columns[column].sends[round]) ? node : geometry.below(round);
    }
    return carrier(node < 0 ? geometry.below(0) : node); // all have been taken since
  }

  @Override
  public final boolean hasCome(int column, int step) {
    return step <= reductions
        ? hasReceived(column, step - 1)
        : areDone(columns[column].receives[gathering(step)]);
  }

  @Override
  public final void take(int column, int step) {
    if (step == 0) {
      beginColumn(column);
    } else if (step < reductions) {
      reduce(column, step - 1);
    } else if (step == reductions) {
      reduce(column, step - 1);
      for (Message[] receives : columns[column].receives) {
        start(receives);
      }
      if (rounds > 0) {
        start(columns[column].sends[rounds - 1]);
      }
    } else if (step < reductions + rounds) {
      start(columns[column].sends[gathering(step) - 1]);
    }
  }

  @Override
  public final boolean isSent(int column) {
    boolean sent = hasSent(column);
    for (int round = 0; round < rounds && sent; round++) {
      sent = areDone(columns[column].sends[round]);
    }
    return sent;
  }

  static void start(Message[] messages) {
    for (Message message : messages) {
      startIfAny(message);
    }
  }

  static boolean areDone(Message[] messages) {
    for (Message message : messages) {
      if (!isDone(message)) {
        return false;
      }
    }
    return true;
  }
}
