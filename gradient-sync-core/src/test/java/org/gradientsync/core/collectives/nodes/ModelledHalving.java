package org.gradientsync.core.collectives.nodes;

import org.gradientsync.core.collectives.messages.Shards;

/**
 * A HalvingPlan in virtual time. The carriers of a node do the same at the same time, so one of
 * them stands for all.
 */
final class ModelledHalving {
  private static final int NODE_SHIFT = 32;
  private static final int STEP_SHIFT = 24;
  private static final int WAKE = 0xff;
  private static final int ELEMENT = ModelledTwoLevel.ELEMENT;

  private final ModelledMachine machine;
  private final VirtualLinks links;
  private final Shards shards;
  private final int nodes;
  private final int rounds;

  ModelledHalving(ModelledMachine machine, VirtualLinks links, Shards shards, int nodes) {
    this.machine = machine;
    this.links = links;
    this.shards = shards;
    this.nodes = nodes;
    rounds = new HalvingRounds(nodes, 0).count();
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
  private final class Carrier implements Halving.Steps {
    private final int node;
    private final HalvingRounds geometry;
    private final Halving halving;
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
      halving = new Halving(shards.chunks(), 2 * rounds, this);
      come = new int[1 + 2 * rounds][shards.chunks()];
      sent = new long[shards.chunks()];
      halving.begin();
    }

    boolean isDone() {
      return halving.isDone() && copied == 2 * shards.chunks();
    }

    /** Does what run does, until the core is busy or has to wait. */
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
        any = halving.advance() | copy();
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
      published = halving.halves();
      if (copied == published) {
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
      int rails = 0;
      long bytes = 0;
      int most = 0;
      for (int rail = 0; rail < shards.ranks(); rail++) {
        Blocks blocks = new Blocks(shards.length(rail, column), nodes, node);
        int count = 0;
        for (int at = from; at < end; ) {
          int next = inPieces ? blocks.pieceEnd(at, end) : end;
          long length = blocks.length(at, next);
          count += length > 0 ? 1 : 0;
          bytes += length * ELEMENT;
          at = next;
        }
        rails += count;
        most = Math.max(most, count);
      }
      if (rails == 0) {
        return;
      }
      clock += most * machine.message();
      messages += most;
      long left = links.send(node, to, clock, rails, bytes, event(to, step, column));
      sent[column] = Math.max(sent[column], left);
    }

    @Override
    public void expect(int column) {
      // costs nothing
    }

    /** Whether the first carrier's message has come, if it has any. */
    @Override
    public boolean hasCome(int column, int step) {
      return come[step][column] > 0 || !isSent(column, step);
    }

    private boolean isSent(int column, int step) {
      boolean sums = step <= rounds;
      int round = sums ? step - 1 : 2 * rounds - step;
      int from = sums ? geometry.below(round) : geometry.above(round);
      Blocks blocks = new Blocks(shards.length(0, column), nodes, from);
      HalvingRounds other = new HalvingRounds(nodes, from);
      return (sums
              ? blocks.length(other.keep(round), other.size(round))
              : blocks.length(0, other.sent(round)))
          > 0;
    }

    @Override
    public void take(int column, int step) {
      clock += step > 0 && isSent(column, step) ? machine.message() : 0;
      if (step == 0) {
        add(column, geometry.keep(0), nodes);
        sendSums(column, 0);
        add(column, 0, geometry.keep(0));
      } else if (step <= rounds) {
        long length = length(column, 0, geometry.sent(step - 1));
        clock += machine.addTime(length * ELEMENT);
        if (step < rounds) {
          sendSums(column, step);
        } else {
          clock += machine.copyTime(length(column, 0, 1) * ELEMENT);
          sendResults(column, rounds - 1);
        }
      } else if (step < 2 * rounds) {
        sendResults(column, 2 * rounds - step - 1);
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
      send(column, 2 * rounds - round, geometry.below(round), 0, geometry.sent(round), true);
    }

    @Override
    public boolean isSent(int column) {
      return sent[column] <= time;
    }
  }
}
