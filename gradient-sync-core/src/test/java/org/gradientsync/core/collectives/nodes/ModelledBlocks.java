package org.gradientsync.core.collectives.nodes;

import org.gradientsync.core.collectives.messages.Shards;
import org.gradientsync.spi.CollectiveCall.Kind;

/**
 * A {@link BlocksPlan} in virtual time: a {@link HalvingPlan} or an {@link ExchangePlan}. The
 * carriers of a node do the same at the same time, so one of them stands for all.
 */
final class ModelledBlocks {
  private static final int NODE_SHIFT = 32;
  private static final int STEP_SHIFT = 24;
  private static final int WAKE = 0xff;
  private static final int ELEMENT = ModelledTwoLevel.ELEMENT;

  private final ModelledMachine machine;
  private final VirtualLinks links;
  private final Shards shards;
  private final int nodes;
  private final int rounds; // to gather
  private final boolean adds;
  private final int reductions; // rounds
  private final ExchangeRounds exchange; // or null if blocks are halved
  private final int[][][] parcels; // the blocks of each message of an exchange, by round

  /**
   * @param exchange how contributions are exchanged, or null if sums are halved
   * @param kind an all-reduce, a reduce-scatter or an all-to-all
   */
  ModelledBlocks(
      ModelledMachine machine,
      VirtualLinks links,
      Shards shards,
      int nodes,
      ExchangeRounds exchange,
      Kind kind) {
    this.exchange = exchange;
    this.machine = machine;
    this.links = links;
    this.shards = shards;
    this.nodes = nodes;
    rounds = kind == Kind.ALL_REDUCE ? HalvingRounds.count(nodes) : 0;
    adds = kind.reduces();
    reductions = exchange == null ? HalvingRounds.count(nodes) : exchange.count();
    parcels = new int[exchange == null ? 0 : reductions][][];
    for (int round = 0; round < parcels.length; round++) {
      parcels[round] = new int[exchange.messages(round)][];
      for (int i = 0; i < parcels[round].length; i++) {
        parcels[round][i] = exchange.blocks(round, i);
      }
    }
  }

  /**
   * Returns when the last rank has all results.
   *
   * @param begins when each node begins
   * @param messages gets the number of messages of the busiest carrier
   */
  long run(long[] begins, long[] messages) {
    Carrier[] carriers = new Carrier[nodes];
    for (int node = 0; node < nodes; node++) {
      carriers[node] = new Carrier(node);
      links.at(begins[node], event(node, WAKE, 0));
    }
    links.run(
        (time, event) -> {
          Carrier carrier = carriers[(int) (event >>> NODE_SHIFT)];
          int step = (int) (event >>> STEP_SHIFT) & 0xff;
          if (step != WAKE) {
            carrier.come[step][(int) event & (1 << STEP_SHIFT) - 1]++;
          }
          carrier.go(time);
        });
    long end = 0;
    for (Carrier carrier : carriers) {
      if (!carrier.isDone()) {
        throw new AssertionError("a carrier waits for ever: node=" + carrier.node);
      }
      end = Math.max(end, carrier.clock);
      messages[0] = Math.max(messages[0], carrier.messages);
    }
    return end + machine.flag();
  }

  private static long event(int node, int step, int column) {
    return (long) node << NODE_SHIFT | (long) step << STEP_SHIFT | column;
  }

  /** All carriers of a node. */
  private final class Carrier implements ColumnSteps.Steps {
    private final int node;
    private final HalvingRounds geometry;
    private final ColumnSteps steps;
    private final int[][] come; // messages, by step and column
    private final long[] sent; // when all of a column is
    private long time; // what has happened until then is known
    private long clock; // until then the core is busy
    private long wakesAt = -1;
    private int published; // halves of columns
    private int copied;
    private long messages;

    Carrier(int node) {
      this.node = node;
      geometry = new HalvingRounds(nodes, node);
      steps = new ColumnSteps(shards.chunks(), reductions + rounds, this);
      come = new int[1 + reductions + rounds][shards.chunks()];
      sent = new long[shards.chunks()];
      steps.begin();
    }

    boolean isDone() {
      return steps.isDone() && (rounds == 0 || copied == 2 * shards.chunks());
    }

    /** Does what {@link CarrierPlan#run} does, until the core is busy or has to wait. */
    void go(long now) {
      if (isDone()) {
        return;
      }
      if (now < clock) {
        wake(now, clock);
        return;
      }
      time = now;
      clock = now;
      boolean any = true;
      while (any && clock == now && !isDone()) {
        any = steps.advance() | copy();
      }
      long next = Long.MAX_VALUE;
      for (int column = 0; column < sent.length && clock == now; column++) {
        next = sent[column] > now ? Math.min(next, sent[column]) : next;
      }
      wake(now, clock > now ? clock : next);
    }

    private void wake(long now, long when) {
      if (when < Long.MAX_VALUE && (wakesAt <= now || when < wakesAt)) {
        wakesAt = when;
        links.at(when, event(node, WAKE, 0));
      }
    }

    private boolean copy() {
      published = steps.halves();
      if (copied == published || rounds == 0) {
        return false;
      }
      int column = copied / 2;
      int keep = geometry.keep(0);
      long length = copied % 2 == 0 ? length(column, 0, keep) : length(column, keep, nodes);
      clock += machine.copyTime((machine.ranksPerNode() - 1) * length * ELEMENT);
      copied++;
      return true;
    }

    /** The number of elements of some blocks of the first carrier, which has the most. */
    private long length(int column, int from, int to) {
      return new Blocks(shards.length(0, column), nodes, node).length(from, to);
    }

    private void send(int column, int step, int to, int from, int end, boolean inPieces) {
      int total = 0;
      long bytes = 0;
      int most = 0;
      for (int shard = 0; shard < shards.ranks(); shard++) {
        Blocks blocks = new Blocks(shards.length(shard, column), nodes, node);
        int count = 0;
        for (int at = from; at < end; ) {
          int next = inPieces ? blocks.pieceEnd(at, end) : end;
          long length = blocks.length(at, next);
          count += length > 0 ? 1 : 0;
          bytes += length * ELEMENT;
          at = next;
        }
        total += count;
        most = Math.max(most, count);
      }
      if (total == 0) {
        return;
      }
      clock += most * machine.message();
      messages += most;
      long left = links.send(node, to, clock, total, bytes, event(to, step, column));
      sent[column] = Math.max(sent[column], left);
    }

    @Override
    public void expect(int column) {
      // costs nothing
    }

    @Override
    public boolean hasCome(int column, int step) {
      return come[step][column] >= expected(column, step);
    }

    /** The number of messages of all carriers that come for a step, those of a peer as one. */
    private int expected(int column, int step) {
      if (step > reductions) {
        int from = geometry.above(reductions + rounds - step);
        int sent = new HalvingRounds(nodes, from).sent(reductions + rounds - step);
        return blocks(column, from).length(0, sent) > 0 ? 1 : 0;
      }
      if (exchange == null) {
        HalvingRounds other = new HalvingRounds(nodes, geometry.below(step - 1));
        Blocks blocks = blocks(column, other.node());
        return blocks.length(other.keep(step - 1), other.size(step - 1)) > 0 ? 1 : 0;
      }
      int count = 0;
      for (int i = 0; i < parcels[step - 1].length; i++) {
        int from = Math.floorMod(node - exchange.distance(step - 1, i), nodes);
        count += parcel(from, 0, column, step - 1, i) > 0 ? 1 : 0;
      }
      return count;
    }

    private Blocks blocks(int column, int of) {
      return new Blocks(shards.length(0, column), nodes, of);
    }

    /** The number of elements in a message of contributions. */
    private long parcel(int from, int shard, int column, int round, int message) {
      Blocks blocks = new Blocks(shards.length(shard, column), nodes, 0);
      long length = 0;
      for (int block : parcels[round][message]) {
        int owner = exchange.owner(from, round, block);
        length += blocks.length(owner, owner + 1);
      }
      return length * machine.ranksPerNode();
    }

    @Override
    public void take(int column, int step) {
      clock += step > 0 ? expected(column, step) * machine.message() : 0;
      if (step == 0) {
        if (exchange == null) {
          add(column, geometry.keep(0), nodes);
          sendSums(column, 0);
          add(column, 0, geometry.keep(0));
        } else {
          sendParcels(column, 0);
        }
      } else if (step < reductions) {
        reduce(column, step);
        if (exchange == null) {
          sendSums(column, step);
        } else {
          sendParcels(column, step);
        }
      } else if (step == reductions) {
        reduce(column, step);
        if (rounds > 0) {
          sendResults(column, rounds - 1);
        }
      } else if (step < reductions + rounds) {
        sendResults(column, reductions + rounds - step - 1);
      }
    }

    private void reduce(int column, int step) {
      if (exchange == null) {
        clock += machine.addTime(length(column, 0, geometry.sent(step - 1)) * ELEMENT);
        clock += step == reductions ? machine.copyTime(length(column, 0, 1) * ELEMENT) : 0;
      } else if (step == reductions) {
        long bytes = (long) nodes * machine.ranksPerNode() * length(column, 0, 1) * ELEMENT;
        clock += adds ? machine.addTime(bytes) : machine.copyTime(bytes);
      }
    }

    private void sendParcels(int column, int round) {
      for (int i = 0; i < parcels[round].length; i++) {
        int count = 0;
        long all = 0;
        for (int shard = 0; shard < shards.ranks(); shard++) {
          long length = parcel(node, shard, column, round, i);
          count += length > 0 ? 1 : 0;
          all += length;
          clock += shard == 0 ? machine.copyTime(length * ELEMENT) : 0;
        }
        if (count > 0) {
          int to = (node + exchange.distance(round, i)) % nodes;
          clock += machine.message();
          messages++;
          long left =
              links.send(node, to, clock, count, all * ELEMENT, event(to, 1 + round, column));
          sent[column] = Math.max(sent[column], left);
        }
      }
    }

    private void add(int column, int from, int to) {
      clock += machine.addTime(machine.ranksPerNode() * length(column, from, to) * ELEMENT);
    }

    private void sendSums(int column, int round) {
      int to = geometry.above(round);
      send(column, 1 + round, to, geometry.keep(round), geometry.size(round), false);
    }

    private void sendResults(int column, int round) {
      send(
          column,
          reductions + rounds - round,
          geometry.below(round),
          0,
          geometry.sent(round),
          true);
    }

    @Override
    public boolean isSent(int column) {
      return sent[column] <= time;
    }
  }
}
