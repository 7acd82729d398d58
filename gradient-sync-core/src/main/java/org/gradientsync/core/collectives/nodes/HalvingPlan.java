package org.gradientsync.core.collectives.nodes;

import java.util.ArrayList;
import java.util.List;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.core.collectives.messages.Shards;
import org.gradientsync.core.collectives.shared.NodeBuffers;
import org.gradientsync.core.ranks.Channel;
import org.gradientsync.spi.Message;

/**
 * An all-reduce over several nodes by halving and doubling, or a reduce-scatter by halving: {@link
 * HalvingRounds} say who exchanges what. Each element is reduced on one node, so all ranks have the
 * same bits, in an order that depends on the placement.
 *
 * <p>Sums travel in the {@linkplain org.gradientsync.DataType#accumulator accumulator's type},
 * results in the buffer's.
 */
final class HalvingPlan extends BlocksPlan {
  private final int rounds;
  private final Column[] columns;
  private final Inbox[] slots = new Inbox[ColumnSteps.SLOTS]; // those of columns of full length

  /** The sums of a column in a slot, in the order of this node's blocks, and their messages. */
  private final class Inbox {
    private final DeviceBuffer sums;
    private final DeviceBuffer[] kept; // by round: the sums to add to
    private final DeviceBuffer[][] received; // by round, each alone
    private final Message[] receives; // by round
    private final Message[] sends; // by round

    Inbox(Blocks blocks, DeviceBuffer scratch, long at) {
      long length = blocks.length();
      sums = scratch.slice(at, length);
      kept = new DeviceBuffer[rounds];
      received = new DeviceBuffer[rounds][1];
      receives = new Message[rounds];
      sends = new Message[rounds];
      long from = at + length;
      for (int round = 0; round < rounds; round++) {
        long count = blocks.length(0, geometry.sent(round));
        kept[round] = scratch.slice(at, count);
        received[round][0] = scratch.slice(from, count);
        from += count;
        int below = carrier(geometry.below(round));
        receives[round] = message(received[round][0], below, Channel.SCATTER, false);
        DeviceBuffer upper = part(blocks, geometry.keep(round), geometry.size(round));
        int above = carrier(geometry.above(round));
        sends[round] = message(upper, above, Channel.SCATTER, true);
      }
    }

    private DeviceBuffer part(Blocks blocks, int from, int to) {
      return sums.slice(blocks.before(from), blocks.length(from, to));
    }
  }

  /** What a column needs. */
  private final class Column {
    private final Inbox inbox;
    private final DeviceBuffer own; // the result of this node's block
    private final DeviceBuffer ownSum;
    private final Part[] sentFirst; // what this node adds to
    private final Part[] kept;

    Column(int index, DeviceBuffer scratch) {
      Blocks blocks = blocks(index);
      int slot = index % slots.length;
      boolean full = blocks.length() == shards.chunk();
      inbox =
          full && slots[slot] != null
              ? slots[slot]
              : new Inbox(blocks, scratch, slot * scratchCount(shards.chunk(), nodes));
      if (full) {
        slots[slot] = inbox;
      }
      own = result(index);
      ownSum = inbox.part(blocks, 0, 1);
      sentFirst = parts(index, geometry.keep(0), nodes);
      kept = parts(index, 0, geometry.keep(0));
    }

    private Part[] parts(int index, int from, int to) {
      Blocks blocks = blocks(index);
      List<Part> parts = new ArrayList<>();
      for (int at = from, end; at < to; at = end) {
        end = pieceEnd(index, at, to);
        long length = blocks.length(at, end);
        if (length > 0) {
          DeviceBuffer[] sources = contributions(first(index, at), length);
          parts.add(new Part(sources, inbox.part(blocks, at, end)));
        }
      }
      return parts.toArray(Part[]::new);
    }
  }

  /**
   * The elements that a carrier needs for a column: its sums, and those that each round receives,
   * which are rounded up to whole blocks.
   */
  static long scratchCount(long column, int nodes) {
    return 2 * column + nodes;
  }

  /** Contributions that lie in one piece, and where their sum goes. */
  private record Part(DeviceBuffer[] sources, DeviceBuffer sum) {}

  /**
   * @param shards a carrier's chunks are its columns
   * @param out for a reduce-scatter, or null
   * @param scratch {@link #scratchCount} elements of the accumulator's type for each slot of
   *     columns
   */
  HalvingPlan(
      TwoLevelRanks ranks,
      NodeBuffers.Mapped buffers,
      Shards shards,
      DeviceBuffer out,
      DeviceBuffer scratch) {
    super(ranks, buffers, shards, out, HalvingRounds.count(ranks.layout().nodes()));
    rounds = geometry.count();
    columns = new Column[ownChunks()];
    for (int i = 0; i < columns.length; i++) {
      columns[i] = new Column(i, scratch);
    }
  }

  @Override
  public void expect(int column) {
    start(columns[column].inbox.receives);
  }

  @Override
  void beginColumn(int column) {
    add(columns[column].sentFirst);
    nodeRanks.requireNoneGaveUp(null); // before what was read from its memory leaves the node
    startIfAny(columns[column].inbox.sends[0]);
    add(columns[column].kept);
    nodeRanks.requireNoneGaveUp(null);
  }

  private void add(Part[] parts) {
    for (Part part : parts) {
      device.accumulate(null, part.sources(), part.sum(), op());
    }
  }

  @Override
  boolean hasReceived(int column, int round) {
    return isDone(columns[column].inbox.receives[round]);
  }

  @Override
  void reduce(int index, int round) {
    Column column = columns[index];
    DeviceBuffer kept = column.inbox.kept[round];
    if (kept.count() > 0) {
      device.accumulate(kept, column.inbox.received[round], kept, op());
    }
    if (round + 1 < rounds) {
      startIfAny(column.inbox.sends[round + 1]);
    } else {
      device.round(column.ownSum, column.own, column.own.count(), op(), group.size());
    }
  }

  @Override
  boolean hasSent(int column) {
    return areDone(columns[column].inbox.sends);
  }

  @Override
  int awaitedInRound(int column, int round) {
    return geometry.below(round);
  }

  @Override
  int notTaken(int column) {
    for (int round = 0; round < rounds; round++) {
      if (!isDone(columns[column].inbox.sends[round])) {
        return geometry.above(round);
      }
    }
    return -1;
  }
}
