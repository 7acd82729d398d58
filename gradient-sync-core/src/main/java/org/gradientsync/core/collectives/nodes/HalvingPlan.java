package org.gradientsync.core.collectives.nodes;

import java.util.ArrayList;
import java.util.List;
import org.gradientsync.DeviceBuffer;
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
 * An all-reduce over several nodes by halving and doubling: {@link HalvingRounds} say who exchanges
 * what, {@link Halving} in which order. Each element is reduced on one node, so all ranks have the
 * same bits, in an order that depends on the placement.
 *
 * <p>Sums travel in the {@linkplain org.gradientsync.DataType#accumulator accumulator's type},
 * results in the buffer's.
 */
final class HalvingPlan extends CarrierPlan implements Halving.Steps {
  /** The columns for which a carrier needs room: of sums that it has, and that it receives. */
  static final int SCRATCH_COLUMNS = 2 * Halving.SLOTS;

  private static final int PIECES = 4; // of a column, for the other ranks of the node

  private final int nodes;
  private final HalvingRounds geometry;
  private final int rounds;
  private final Halving halving; // null if this rank carries nothing
  private final Column[] columns;
  private final Inbox[] slots = new Inbox[Halving.SLOTS]; // those of columns of full length

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
    private final List<Part> sentFirst; // what this node adds to
    private final List<Part> kept;
    private final Message[][] receives; // of results, by round
    private final Message[][] sends;

    Column(int index, DeviceBuffer scratch) {
      long length = shards.length(rail, index);
      Blocks blocks = new Blocks(length, nodes, geometry.node());
      int slot = index % slots.length;
      long at = 2 * slot * shards.chunk();
      boolean full = length == shards.chunk();
      inbox = full && slots[slot] != null ? slots[slot] : new Inbox(blocks, scratch, at);
      if (full) {
        slots[slot] = inbox;
      }
      long first = shards.first(rail, index);
      own = buffers.of(rail).slice(first + blocks.first(0), blocks.length(0, 1));
      ownSum = inbox.part(blocks, 0, 1);
      sentFirst = parts(blocks, first, geometry.keep(0), nodes);
      kept = parts(blocks, first, 0, geometry.keep(0));
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

    private List<Part> parts(Blocks blocks, long first, int from, int to) {
      List<Part> parts = new ArrayList<>();
      for (int at = from, end; at < to; at = end) {
        end = blocks.pieceEnd(at, to);
        long length = blocks.length(at, end);
        if (length > 0) {
          DeviceBuffer[] sources = contributions(first + blocks.first(at), length);
          parts.add(new Part(sources, inbox.part(blocks, at, end)));
        }
      }
      return parts;
    }

    private Message[] results(
        Blocks blocks, long first, int from, int to, int peer, boolean sending) {
      List<Message> messages = new ArrayList<>();
      for (int at = from, end; at < to; at = end) {
        end = blocks.pieceEnd(at, to);
        DeviceBuffer run = buffers.of(rail).slice(first + blocks.first(at), blocks.length(at, end));
        Message message = message(run, peer, Channel.GATHER, sending);
        if (message != null) {
          messages.add(message);
        }
      }
      return messages.toArray(Message[]::new);
    }
  }

  /** Contributions that lie in one piece, and where their sum goes. */
  private record Part(DeviceBuffer[] sources, DeviceBuffer sum) {}

  /**
   * @param shards a carrier's chunks are its columns
   * @param scratch room for {@link #SCRATCH_COLUMNS} columns of the accumulator's type
   */
  HalvingPlan(
      ProcessGroup group,
      HostDevice device,
      NodeLayout layout,
      NodeMates mates,
      SharedMemoryRendezvous board,
      NodeBuffers.Mapped buffers,
      Shards shards,
      DeviceBuffer scratch) {
    super(group, device, layout, mates, board, buffers, shards);
    nodes = layout.nodes();
    geometry = new HalvingRounds(nodes, layout.node());
    rounds = geometry.count();
    for (int shard = 0; shard < shards.ranks(); shard++) {
      divide(shard);
    }
    columns = new Column[ownChunks()];
    for (int i = 0; i < columns.length; i++) {
      columns[i] = new Column(i, scratch);
    }
    halving = columns.length == 0 ? null : new Halving(columns.length, 2 * rounds, this);
  }

  /** Of each column what comes before the last round, then the rest; each in up to two pieces. */
  private void divide(int shard) {
    int count = chunksOf(shard);
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

  @Override
  void begin() {
    if (halving != null) {
      halving.begin();
    }
  }

  @Override
  boolean advance() {
    if (halving == null || !halving.advance()) {
      return false;
    }
    publish(PIECES / 2 * halving.halves());
    return true;
  }

  @Override
  boolean canAdvance() {
    return halving != null && halving.canAdvance();
  }

  @Override
  boolean isCarried() {
    return halving == null || halving.isDone();
  }

  @Override
  int awaitedSender() {
    int step = halving == null ? -1 : halving.awaited();
    if (step < 1) {
      return RankMap.NO_RANK;
    }
    return carrier(step <= rounds ? geometry.below(step - 1) : geometry.above(2 * rounds - step));
  }

  @Override
  int awaitedReceiver() {
    if (halving == null) {
      return group.rank(); // carries nothing, so never waits for this
    }
    Column column = columns[halving.left()];
    for (int round = 0; round < rounds; round++) {
      if (!isDone(column.inbox.sends[round])) {
        return carrier(geometry.above(round));
      }
      if (!areDone(column.sends[round])) {
        return carrier(geometry.below(round));
      }
    }
    return carrier(geometry.below(0)); // everything has been taken since
  }

  @Override
  public void expect(int column) {
    for (Message receive : columns[column].inbox.receives) {
      startIfAny(receive);
    }
  }

  @Override
  public boolean hasCome(int column, int step) {
    return step <= rounds
        ? isDone(columns[column].inbox.receives[step - 1])
        : areDone(columns[column].receives[2 * rounds - step]);
  }

  @Override
  public void take(int index, int step) {
    Column column = columns[index];
    if (step == 0) {
      add(column.sentFirst);
      mates.requireNoneGaveUp(null); // before what was read from its memory leaves the node
      startIfAny(column.inbox.sends[0]);
      add(column.kept);
      mates.requireNoneGaveUp(null);
      for (Message[] receives : column.receives) {
        start(receives);
      }
    } else if (step <= rounds) {
      Inbox inbox = column.inbox;
      DeviceBuffer kept = inbox.kept[step - 1];
      if (kept.count() > 0) {
        device.accumulate(kept, inbox.received[step - 1], kept, op());
      }
      if (step < rounds) {
        startIfAny(inbox.sends[step]);
      } else {
        device.round(column.ownSum, column.own, column.own.count(), op(), group.size());
        start(column.sends[rounds - 1]);
      }
    } else if (step < 2 * rounds) {
      start(column.sends[2 * rounds - step - 1]);
    }
  }

  private void add(List<Part> parts) {
    for (int i = 0; i < parts.size(); i++) {
      device.accumulate(null, parts.get(i).sources(), parts.get(i).sum(), op());
    }
  }

  private static void start(Message[] messages) {
    for (Message message : messages) {
      message.start();
    }
  }

  private static boolean areDone(Message[] messages) {
    for (Message message : messages) {
      if (!message.test()) {
        return false;
      }
    }
    return true;
  }

  @Override
  public boolean isSent(int column) {
    for (int round = 0; round < rounds; round++) {
      if (!isDone(columns[column].inbox.sends[round]) || !areDone(columns[column].sends[round])) {
        return false;
      }
    }
    return true;
  }
}
