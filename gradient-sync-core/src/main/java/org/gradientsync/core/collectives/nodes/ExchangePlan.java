package org.gradientsync.core.collectives.nodes;

import java.util.List;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.core.collectives.messages.Shards;
import org.gradientsync.core.collectives.shared.NodeBuffers;
import org.gradientsync.core.ranks.Channel;
import org.gradientsync.spi.Message;

/**
 * An all-reduce or a reduce-scatter over several nodes in rank order, for buffers that are small
 * for the number of nodes: the contributions of all ranks travel to the owner of each block, in
 * messages of several blocks ({@link ExchangeRounds}). The owner adds them in rank order, so the
 * bits are those of all other reducers. In an all-to-all, it keeps them as they are.
 *
 * <p>Contributions and results travel in the buffer's type.
 */
final class ExchangePlan extends BlocksPlan {
  private final ExchangeRounds exchange;
  private final boolean adds;
  private final Column[] columns;
  private final Inbox[] slots = new Inbox[ColumnSteps.SLOTS]; // those of columns of full length

  /** The blocks of a column on their way: the messages, and what of them is sent on. */
  private final class Inbox {
    private final Blocks blocks;
    private final DeviceBuffer scratch;
    private final Message[][] receives = new Message[exchange.count()][];
    private final Message[][] sends = new Message[exchange.count()][];
    private final Copies[] passedOn = new Copies[exchange.count()];
    private final DeviceBuffer[][] own = new DeviceBuffer[exchange.count()][nodes]; // by block
    private final DeviceBuffer[] come = new DeviceBuffer[nodes]; // by block
    private long next; // the first free element of the scratch memory

    Inbox(Blocks blocks, DeviceBuffer scratch, long at) {
      this.blocks = blocks;
      this.scratch = scratch;
      next = at;
      for (int round = 0; round < receives.length; round++) {
        int messages = exchange.messages(round);
        receives[round] = new Message[messages];
        sends[round] = new Message[messages];
        passedOn[round] = new Copies();
        for (int i = 0; i < messages; i++) {
          send(round, i);
        }
        for (int i = 0; i < messages; i++) {
          receive(round, i);
        }
      }
    }

    private long length(int node, int round, int block) {
      int owner = exchange.owner(node, round, block);
      int number = Math.floorMod(owner - geometry.node(), nodes);
      int origin = exchange.origin(node, round, block);
      return layout.ranksOf(origin).size() * blocks.length(number, number + 1);
    }

    private void send(int round, int message) {
      int node = geometry.node();
      long from = next;
      for (int block : exchange.blocks(round, message)) {
        DeviceBuffer place = scratch.slice(next, length(node, round, block));
        next += place.count();
        if (come[block] == null) {
          own[round][block] = place;
        } else {
          passedOn[round].add(come[block], place);
        }
      }
      int to = (node + exchange.distance(round, message)) % nodes;
      sends[round][message] =
          message(scratch.slice(from, next - from), carrier(to), Channel.SCATTER, true);
    }

    private void receive(int round, int message) {
      int source = Math.floorMod(geometry.node() - exchange.distance(round, message), nodes);
      long from = next;
      for (int block : exchange.blocks(round, message)) {
        come[block] = scratch.slice(next, length(source, round, block));
        next += come[block].count();
      }
      receives[round][message] =
          message(scratch.slice(from, next - from), carrier(source), Channel.SCATTER, false);
    }
  }

  /** What a column needs. */
  private final class Column {
    private final Inbox inbox;
    private final Copies[] copies = new Copies[exchange.count()]; // of this node's contributions
    private final DeviceBuffer[] contributions; // to this node's block, by rank
    private final DeviceBuffer result; // or null
    private final Copies kept = new Copies(); // contributions that are not added

    Column(int index, DeviceBuffer scratch) {
      Blocks blocks = blocks(index);
      int slot = index % slots.length;
      boolean full = blocks.length() == shards.chunk();
      long room = scratch.count() / slots.length;
      inbox = full && slots[slot] != null ? slots[slot] : new Inbox(blocks, scratch, slot * room);
      if (full) {
        slots[slot] = inbox;
      }
      for (int round = 0; round < copies.length; round++) {
        copies[round] = new Copies();
        for (int block = 0; block < nodes; block++) {
          DeviceBuffer place = inbox.own[round][block];
          long length = place == null ? 0 : place.count() / localSize;
          for (int local = 0; local < localSize && length > 0; local++) {
            DeviceBuffer source = buffers.of(local).slice(first(index, block), length);
            copies[round].add(source, place.slice(local * length, length));
          }
        }
      }
      long length = blocks.length(0, 1);
      result = adds ? result(index) : null;
      contributions = length == 0 ? null : ofAllRanks(index, length);
      for (int rank = 0; rank < group.size() && !adds && length > 0; rank++) {
        kept.add(contributions[rank], ofOutput(rank, index));
      }
    }

    private DeviceBuffer[] ofAllRanks(int index, long length) {
      DeviceBuffer[] all = new DeviceBuffer[group.size()];
      for (int node = 0; node < nodes; node++) {
        int block = Math.floorMod(geometry.node() - node, nodes);
        List<Integer> ranks = layout.ranksOf(node);
        for (int i = 0; i < ranks.size(); i++) {
          all[ranks.get(i)] =
              block == 0 ? ownBlock(index, i) : inbox.come[block].slice(i * length, length);
        }
      }
      return all;
    }
  }

  /**
   * @param shards a carrier's chunks are its columns
   * @param out for a reduce-scatter or an all-to-all, or null
   * @param adds whether contributions are added
   * @param scratch {@link #scratchCount} elements of the buffer's type
   */
  ExchangePlan(
      TwoLevelRanks ranks,
      NodeBuffers.Mapped buffers,
      Shards shards,
      DeviceBuffer out,
      boolean adds,
      ExchangeRounds exchange,
      DeviceBuffer scratch) {
    super(ranks, buffers, shards, out, exchange.count());
    this.exchange = exchange;
    this.adds = adds;
    columns = new Column[ownChunks()];
    for (int i = 0; i < columns.length; i++) {
      columns[i] = new Column(i, scratch);
    }
  }

  /**
   * How many elements of scratch a plan needs.
   *
   * @param most the number of ranks of the largest node
   */
  static long scratchCount(Shards shards, ExchangeRounds exchange, int most) {
    long moved = 0;
    for (int round = 0; round < exchange.count(); round++) {
      for (int i = 0; i < exchange.messages(round); i++) {
        moved += exchange.blocks(round, i).length;
      }
    }
    long block = (shards.chunk() + exchange.nodes() - 1) / exchange.nodes();
    return 2 * ColumnSteps.SLOTS * moved * block * most;
  }

  @Override
  public void expect(int column) {
    for (Message[] receives : columns[column].inbox.receives) {
      start(receives);
    }
  }

  @Override
  void beginColumn(int column) {
    send(columns[column], 0);
  }

  private void send(Column column, int round) {
    column.inbox.passedOn[round].run();
    column.copies[round].run();
    nodeRanks.requireNoneGaveUp(null); // before what was read from its memory leaves the node
    start(column.inbox.sends[round]);
  }

  @Override
  boolean hasReceived(int column, int round) {
    return areDone(columns[column].inbox.receives[round]);
  }

  @Override
  void reduce(int index, int round) {
    Column column = columns[index];
    if (round + 1 < exchange.count()) {
      send(column, round + 1);
    } else if (column.contributions != null) {
      if (adds) {
        device.reduce(column.contributions, column.result, op());
      } else {
        column.kept.run();
      }
      nodeRanks.requireNoneGaveUp(null);
    }
  }

  @Override
  boolean hasSent(int column) {
    for (Message[] sends : columns[column].inbox.sends) {
      if (!areDone(sends)) {
        return false;
      }
    }
    return true;
  }

  @Override
  int awaitedInRound(int column, int round) {
    Message[] receives = columns[column].inbox.receives[round];
    int i = 0;
    while (i < receives.length - 1 && isDone(receives[i])) {
      i++;
    }
    return Math.floorMod(geometry.node() - exchange.distance(round, i), nodes);
  }

  @Override
  int notTaken(int column) {
    for (int round = 0; round < exchange.count(); round++) {
      Message[] sends = columns[column].inbox.sends[round];
      for (int i = 0; i < sends.length; i++) {
        if (!isDone(sends[i])) {
          return (geometry.node() + exchange.distance(round, i)) % nodes;
        }
      }
    }
    return -1;
  }
}
