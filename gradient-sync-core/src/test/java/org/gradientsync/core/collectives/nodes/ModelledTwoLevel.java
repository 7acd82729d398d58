package org.gradientsync.core.collectives.nodes;

import java.util.Arrays;
import java.util.stream.IntStream;
import org.gradientsync.SumOrder;
import org.gradientsync.core.collectives.messages.CarriedAllReduce;
import org.gradientsync.core.collectives.messages.MessageReducer;
import org.gradientsync.core.collectives.messages.Shards;
import org.gradientsync.core.collectives.nodes.TwoLevelSizes.Way;
import org.gradientsync.core.rendezvous.LeaderRounds;
import org.gradientsync.core.rendezvous.SumRounds;
import org.gradientsync.spi.CollectiveCall.Kind;
import org.gradientsync.spi.ReducerParts;

/**
 * All-reduces and reduce-scatters of the reducer {@code two-level} in virtual time, of float32, on
 * nodes with equally many ranks that call at the same time. What is sent when is decided by the
 * same code as in real runs: {@link TwoLevelSizes}, {@link RunningSum}, {@link ChunkOrder}, {@link
 * ColumnSteps}, {@link Shards}, {@link LeaderRounds}, {@link SumRounds}, and the sizes of chunks.
 *
 * <p>Simplified: the carriers of a node do the same at the same time, so one of them stands for
 * all, and its messages for theirs; they share the node's link. A core finds out at once what has
 * happened. A message is sent when its last byte has left.
 */
final class ModelledTwoLevel {
  /** Of an element, of its sum and of its result. */
  static final int ELEMENT = Float.BYTES;

  /** Chunks times nodes above which the nodes of a symmetric sum are not simulated one by one. */
  private static final long MANY = 1_000_000;

  private static final TwoLevelSizes SIZES = TwoLevelSizes.USUAL;
  private static final int KIND_SHIFT = 40;
  private static final int NODE_SHIFT = 28;
  private static final long WAKE = 0;
  private static final long SUM = 1;
  private static final long RESULT = 2;

  private final ModelledMachine machine;
  private final int nodes;
  private final int ranks;
  private final SumOrder sumOrder;
  private final VirtualLinks links;

  private ModelledTwoLevel(ModelledMachine machine, int nodes, SumOrder sumOrder) {
    this.machine = machine;
    this.nodes = nodes;
    this.sumOrder = sumOrder;
    ranks = nodes * machine.ranksPerNode();
    links = new VirtualLinks(machine, nodes);
  }

  /** Models the way that a buffer of this size takes. */
  static Modelled allReduce(ModelledMachine machine, int nodes, SumOrder order, long count) {
    int carriers = machine.ranksPerNode();
    Way way =
        nodes == 1
            ? Way.RUNNING_SUM
            : SIZES.way(order, nodes, count, ELEMENT, ELEMENT, nodes * carriers, carriers);
    return switch (way) {
      case CALLS ->
          order == SumOrder.ANY
              ? withSums(machine, nodes, count)
              : withCalls(machine, nodes, count);
      case DIRECT_SUMS -> directSums(machine, nodes, count);
      case HALVING -> halving(machine, nodes, count);
      case EXCHANGE -> exchange(machine, nodes, count);
      case RUNNING_SUM -> runningSum(machine, nodes, order, count);
      case STRAIGHT -> throw new AssertionError("only of reduce-scatters");
    };
  }

  /**
   * Models the way that a reduce-scatter takes.
   *
   * @param count of a rank's input, a multiple of the number of ranks
   */
  static Modelled reduceScatter(ModelledMachine machine, int nodes, SumOrder order, long count) {
    return reduceScatter(
        machine,
        nodes,
        order,
        count,
        SIZES.scatter(order, nodes, count, ELEMENT, ELEMENT, machine.ranksPerNode()));
  }

  /** Models a way. */
  static Modelled reduceScatter(
      ModelledMachine machine, int nodes, SumOrder order, long count, Way way) {
    int carriers = machine.ranksPerNode();
    ModelledTwoLevel model = new ModelledTwoLevel(machine, nodes, order);
    long block = count / model.ranks;
    boolean carriesSums = way == Way.CALLS && order == SumOrder.ANY;
    boolean runs = way == Way.RUNNING_SUM;
    int carried = way == Way.CALLS ? (int) (count * ELEMENT) : 0;
    long[] met = runs ? null : model.meet(carried, carriesSums);
    Shards columns =
        order == SumOrder.ANY
            ? SIZES.columns(count, ELEMENT, carriers)
            : SIZES.exchanged(count, ELEMENT, carriers);
    columns = TwoLevelSizes.ofBlocks(columns, nodes);
    return switch (way) {
      case CALLS -> {
        long added = machine.addTime(model.ranks * block * ELEMENT);
        long end = carriesSums ? machine.copyTime(block * ELEMENT) : added;
        yield model.result(last(met) + end, 0);
      }
      case HALVING, EXCHANGE -> {
        ExchangeRounds rounds =
            way == Way.HALVING ? null : TwoLevelSizes.exchange(nodes, columns, ELEMENT);
        long[] messages = new long[1];
        ModelledBlocks blocks =
            new ModelledBlocks(machine, model.links, columns, nodes, rounds, Kind.REDUCE_SCATTER);
        yield model.result(blocks.run(met, messages), messages[0]);
      }
      case RUNNING_SUM -> {
        Shards shards = SIZES.scattered(order, nodes, block, ELEMENT, carriers);
        boolean symmetric = order == SumOrder.ANY && (long) shards.chunks() * nodes * nodes > MANY;
        yield model.sum(shards, symmetric ? 1 : nodes, true);
      }
      default -> model.straight(met, block);
    };
  }

  /** Contributions of each rank straight to the owners. See {@link MessageReducer}. */
  private Modelled straight(long[] clocks, long block) {
    int chunk =
        (int) MessageReducer.chunk(block * ranks, ELEMENT, ranks, ReducerParts.HOST_CHUNK_BYTES);
    Shards pieces = new Shards(block, 1, chunk);
    int perNode = machine.ranksPerNode();
    for (int piece = 0; piece < pieces.chunks(); piece++) {
      long size = pieces.length(0, piece) * ELEMENT;
      for (int turn = 1; turn < nodes; turn++) {
        for (int local = 0; local < perNode; local++) {
          for (int node = 0; node < nodes; node++) {
            clocks[node] += machine.message();
            int to = (node + turn) % nodes;
            links.send(node, to, clocks[node], perNode, perNode * size, event(SUM, to, piece));
          }
        }
      }
    }
    int[][] come = new int[nodes][pieces.chunks()];
    links.run(
        (time, event) -> {
          int node = (int) (event >>> NODE_SHIFT) & 0xfff;
          int piece = (int) event & (1 << NODE_SHIFT) - 1;
          clocks[node] = Math.max(clocks[node], time) + machine.message();
          if (++come[node][piece] == (nodes - 1) * perNode) {
            clocks[node] += machine.addTime(ranks * pieces.length(0, piece) * ELEMENT);
          }
        });
    return result(last(clocks), (long) (nodes - 1) * perNode * pieces.chunks());
  }

  /** With contributions that travel with the calls. See {@link CarriedAllReduce}. */
  static Modelled withCalls(ModelledMachine machine, int nodes, long count) {
    ModelledTwoLevel model = new ModelledTwoLevel(machine, nodes, SumOrder.RANKS);
    int bytes = (int) (count * ELEMENT);
    long[] met = model.meet(bytes, false);
    return model.result(last(met) + machine.addTime((long) model.ranks * bytes), 0);
  }

  /** With sums over nodes that travel with the calls, in {@link SumRounds}. */
  static Modelled withSums(ModelledMachine machine, int nodes, long count) {
    ModelledTwoLevel model = new ModelledTwoLevel(machine, nodes, SumOrder.ANY);
    int bytes = (int) (count * ELEMENT);
    long[] met = model.meet(bytes, true);
    return model.result(last(met) + machine.copyTime(bytes), 0);
  }

  /** By an exchange of contributions. See {@link ExchangePlan}. */
  static Modelled exchange(ModelledMachine machine, int nodes, long count) {
    int carriers = machine.ranksPerNode();
    ModelledTwoLevel model = new ModelledTwoLevel(machine, nodes, SumOrder.RANKS);
    long[] met = model.meet(0, false);
    long[] messages = new long[1];
    Shards shards = SIZES.exchanged(count, ELEMENT, carriers);
    ExchangeRounds rounds = TwoLevelSizes.exchange(nodes, shards, ELEMENT);
    ModelledBlocks blocks =
        new ModelledBlocks(machine, model.links, shards, nodes, rounds, Kind.ALL_REDUCE);
    return model.result(blocks.run(met, messages), messages[0]);
  }

  /** By sums of all nodes that each node gets. See {@link DirectSumsPlan}. */
  static Modelled directSums(ModelledMachine machine, int nodes, long count) {
    ModelledTwoLevel model = new ModelledTwoLevel(machine, nodes, SumOrder.ANY);
    Shards shards = SIZES.directSums(count, ELEMENT, machine.ranksPerNode());
    int[][] come = new int[nodes][shards.chunks()];
    long[] clocks = model.meet(0, false);
    for (int node = 0; node < nodes; node++) {
      for (int chunk = 0; chunk < shards.chunks(); chunk++) {
        clocks[node] += machine.addTime(shards.ranks() * shards.length(0, chunk) * ELEMENT);
        int filled = 0;
        long bytes = 0;
        for (int shard = 0; shard < shards.ranks(); shard++) {
          filled += shards.length(shard, chunk) > 0 ? 1 : 0;
          bytes += shards.length(shard, chunk) * ELEMENT;
        }
        for (int turn = 1; turn < nodes; turn++) {
          int to = (node + turn) % nodes;
          clocks[node] += machine.message();
          model.links.send(node, to, clocks[node], filled, bytes, event(SUM, to, chunk));
        }
      }
    }
    model.links.run(
        (time, event) -> {
          int node = (int) (event >>> NODE_SHIFT) & 0xfff;
          int chunk = (int) event & (1 << NODE_SHIFT) - 1;
          clocks[node] = Math.max(clocks[node], time) + machine.message();
          if (++come[node][chunk] == nodes - 1) {
            long bytes = shards.length(0, chunk) * ELEMENT;
            clocks[node] += machine.addTime(nodes * bytes) + machine.copyTime(bytes);
            clocks[node] += machine.copyTime((shards.ranks() - 1) * bytes);
          }
        });
    return model.result(last(clocks) + machine.flag(), (nodes - 1) * shards.chunks());
  }

  /** By halving and doubling. See {@link HalvingPlan}. */
  static Modelled halving(ModelledMachine machine, int nodes, long count) {
    ModelledTwoLevel model = new ModelledTwoLevel(machine, nodes, SumOrder.ANY);
    long[] met = model.meet(0, false);
    long[] messages = new long[1];
    Shards shards = SIZES.columns(count, ELEMENT, machine.ranksPerNode());
    ModelledBlocks blocks =
        new ModelledBlocks(machine, model.links, shards, nodes, null, Kind.ALL_REDUCE);
    return model.result(blocks.run(met, messages), messages[0]);
  }

  /** By a running sum. See {@link RunningSumPlan}. */
  static Modelled runningSum(ModelledMachine machine, int nodes, SumOrder order, long count) {
    Shards shards = SIZES.chunks(order, nodes, count, ELEMENT, machine.ranksPerNode());
    boolean symmetric = order == SumOrder.ANY && nodes > 1 && (long) shards.chunks() * nodes > MANY;
    return symmetric ? symmetricSum(machine, nodes, shards) : sum(machine, nodes, order, shards);
  }

  /** A sum of which all nodes are simulated. */
  static Modelled sum(ModelledMachine machine, int nodes, SumOrder order, Shards shards) {
    return new ModelledTwoLevel(machine, nodes, order).sum(shards, nodes, false);
  }

  /**
   * A sum in any order of which only one node is simulated, because all do the same. Its neighbors'
   * messages are its own: the chunk that begins one node further on. The number of chunks is
   * rounded up to a multiple of the number of nodes.
   */
  static Modelled symmetricSum(ModelledMachine machine, int nodes, Shards shards) {
    long chunks = ((long) shards.chunks() + nodes - 1) / nodes * nodes;
    long length = (shards.count() / shards.ranks() + chunks - 1) / chunks;
    Shards equal = new Shards(length * chunks * shards.ranks(), shards.ranks(), length);
    return new ModelledTwoLevel(machine, nodes, SumOrder.ANY).sum(equal, 1, false);
  }

  private static long last(long[] times) {
    return Arrays.stream(times).max().orElseThrow();
  }

  private Modelled result(long time, long messages) {
    LeaderRounds rounds = new LeaderRounds(nodes, 0);
    long calls = IntStream.range(0, rounds.count()).map(i -> rounds.destinations(i).length).sum();
    return new Modelled(time, messages + calls, links.messages(), links.bytes());
  }

  /**
   * The rendezvous: when the ranks of each node have all calls, which are the same.
   *
   * @param part the size of a contribution that travels with the calls, or of a sum, or 0
   */
  private long[] meet(int part, boolean sums) {
    Meeting[] leaders = new Meeting[nodes];
    Arrays.setAll(leaders, node -> new Meeting(node, part, sums));
    links.run((time, event) -> leaders[(int) (event >>> 8)].come((int) (event & 0xff), time));
    return Arrays.stream(leaders).mapToLong(Meeting::end).toArray();
  }

  /** The rendezvous of a node's leader. */
  private final class Meeting {
    private final int node;
    private final int part;
    private final SumRounds sumRounds; // or null
    private final LeaderRounds rounds;
    private final int[] come; // messages, by round
    private int done; // rounds
    private long clock;

    Meeting(int node, int part, boolean sums) {
      this.node = node;
      this.part = part;
      sumRounds = sums ? new SumRounds(nodes, node) : null;
      rounds = new LeaderRounds(nodes, node);
      come = new int[rounds.count()];
      clock = machine.copyTime(part) + machine.flag() + machine.ranksPerNode() * machine.call();
      clock += sums ? machine.addTime((long) machine.ranksPerNode() * part) : 0;
      send();
    }

    void come(int round, long time) {
      come[round]++;
      while (done < come.length && come[done] == rounds.sources(done).length) {
        clock = Math.max(clock, time);
        for (int source : rounds.sources(done)) {
          long bytes = bytes(new LeaderRounds(nodes, source), done);
          clock += machine.message() + machine.call() + machine.copyTime(bytes);
        }
        clock += sumRounds == null ? 0 : (sumRounds.parts(done).length - 1) * machine.addTime(part);
        done++;
        send();
      }
    }

    private void send() {
      int[] destinations = done == come.length ? new int[0] : rounds.destinations(done);
      int bytes = destinations.length == 0 ? 0 : bytes(rounds, done);
      clock += machine.copyTime(bytes);
      for (int to : destinations) {
        clock += machine.message();
        links.send(node, to, clock, 1, bytes, (long) to << 8 | done);
      }
    }

    private int bytes(LeaderRounds of, int round) {
      int contributions = of.blocks(round) * machine.ranksPerNode();
      return LeaderRounds.messageBytes(sumRounds == null ? contributions : 1, part);
    }

    /** When the ranks of the node have all calls. */
    long end() {
      return clock + (sumRounds == null ? 0 : machine.addTime(part)) + machine.flag();
    }
  }

  /**
   * @param scatters whether a rank carries these chunks of the block of each node
   */
  private Modelled sum(Shards shards, int simulated, boolean scatters) {
    long[] met = meet(0, false);
    int owners = scatters ? nodes : 1;
    int chunks = shards.chunks() * owners;
    long[] lengths = new long[chunks]; // of the first shard, which has the most
    int[] counts = new int[chunks];
    long[] bytes = new long[chunks]; // of all shards
    for (int chunk = 0; chunk < chunks; chunk++) {
      lengths[chunk] = shards.length(0, chunk / owners);
      for (int shard = 0; shard < shards.ranks(); shard++) {
        long length = shards.length(shard, chunk / owners);
        counts[chunk] += length > 0 ? 1 : 0;
        bytes[chunk] += length * ELEMENT;
      }
    }
    Carrier[] carriers = new Carrier[simulated];
    for (int node = 0; node < simulated; node++) {
      carriers[node] = new Carrier(node, simulated, scatters, lengths, counts, bytes);
      links.at(met[node], event(WAKE, node, 0));
    }
    links.run(
        (time, event) -> {
          Carrier carrier = carriers[(int) (event >>> NODE_SHIFT) & 0xfff];
          int chunk = (int) event & (1 << NODE_SHIFT) - 1;
          if (event >>> KIND_SHIFT == SUM) {
            carrier.hasSum[chunk] = true;
          } else if (event >>> KIND_SHIFT == RESULT) {
            carrier.hasResult[chunk] = true;
          }
          carrier.go(time);
        });
    long end = 0;
    long most = 0;
    for (Carrier carrier : carriers) {
      if (!carrier.isDone()) {
        throw new AssertionError("a carrier waits for ever: node=" + carrier.node);
      }
      end = Math.max(end, carrier.clock);
      most = Math.max(most, carrier.messages);
    }
    return result(end + machine.flag(), most);
  }

  private static long event(long kind, int node, int chunk) {
    return kind << KIND_SHIFT | (long) node << NODE_SHIFT | chunk;
  }

  /** All carriers of a node. */
  private final class Carrier implements RunningSum.Steps {
    private final int node;
    private final int simulated;
    private final boolean scatters;
    private final long[] lengths;
    private final int[] counts; // of messages, by chunk
    private final long[] bytes;
    private final ChunkOrder order;
    private final RunningSum sum;
    private final boolean[] hasSum;
    private final boolean[] hasResult;
    private final long[] sumSent; // when
    private final long[] resultSent;
    private long time; // what has happened until then is known
    private long clock; // until then the core is busy
    private long nextSent; // the earliest time at which a message will be sent
    private long wakesAt = -1; // then it looks again in any case
    private int copied; // chunks of each other shard
    private long messages;

    Carrier(int node, int simulated, boolean scatters, long[] lengths, int[] counts, long[] bytes) {
      this.node = node;
      this.simulated = simulated;
      this.scatters = scatters;
      this.lengths = lengths;
      this.counts = counts;
      this.bytes = bytes;
      order = new ChunkOrder(counts.length, nodes, node, sumOrder);
      sum = new RunningSum(order, SumPlan.slots(sumOrder, nodes), this);
      hasSum = new boolean[counts.length];
      hasResult = new boolean[counts.length];
      sumSent = new long[counts.length];
      resultSent = new long[counts.length];
      sum.begin();
    }

    boolean isDone() {
      return sum.isDone() && (scatters || copied == counts.length);
    }

    /** The node whose block a chunk is of. See {@link ScatteredSumPlan}. */
    private int owner(int chunk) {
      return (chunk + nodes - 1) % nodes;
    }

    /** Does what {@link RunningSumPlan#run} does, until the core is busy or has to wait. */
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
        nextSent = Long.MAX_VALUE;
        any = sum.advance() | copy();
      }
      wake(now, clock > now ? clock : nextSent);
    }

    private void wake(long now, long when) {
      if (when < Long.MAX_VALUE && (wakesAt <= now || when < wakesAt)) {
        wakesAt = when;
        links.at(when, event(WAKE, node, 0));
      }
    }

    private boolean copy() {
      if (scatters || copied == sum.results()) {
        return false;
      }
      long length = lengths[order.result(copied++)];
      clock += machine.copyTime((machine.ranksPerNode() - 1) * length * ELEMENT);
      return true;
    }

    private long send(long kind, int chunk, int destination) {
      clock += machine.message();
      messages++;
      int to = destination;
      int same = chunk;
      if (simulated < nodes) { // this node stands for the other one, and another chunk for this
        to = node;
        same = chunk / nodes * nodes + (chunk + node + nodes - destination) % nodes;
      }
      return links.send(node, to, clock, counts[chunk], bytes[chunk], event(kind, to, same));
    }

    private boolean isSent(long when) {
      if (when > time) {
        nextSent = Math.min(nextSent, when);
      }
      return when <= time;
    }

    @Override
    public void expectSum(int chunk) {
      // costs nothing
    }

    @Override
    public boolean isSumThere(int chunk) {
      return order.isFirst(chunk) || hasSum[chunk];
    }

    @Override
    public void add(int chunk) {
      clock += order.isFirst(chunk) ? 0 : machine.message();
      clock += machine.addTime(machine.ranksPerNode() * lengths[chunk] * ELEMENT);
      if (!order.isLast(chunk)) {
        sumSent[chunk] = send(SUM, chunk, (node + 1) % nodes);
      } else if (scatters && owner(chunk) != node) {
        sumSent[chunk] = send(RESULT, chunk, owner(chunk));
      }
    }

    @Override
    public boolean isSumSent(int chunk) {
      return isSent(sumSent[chunk]);
    }

    @Override
    public void expectResult(int chunk) {
      // costs nothing
    }

    @Override
    public boolean isResultThere(int chunk) {
      return order.isLast(chunk) || scatters && owner(chunk) != node || hasResult[chunk];
    }

    @Override
    public void returnResult(int chunk) {
      boolean received = !scatters || owner(chunk) == node;
      clock += order.isLast(chunk) || !received ? 0 : machine.message();
      if (scatters) {
        return;
      }
      for (int destination : order.resultTo(chunk)) {
        resultSent[chunk] = send(RESULT, chunk, destination);
      }
    }

    @Override
    public boolean isResultReturned(int chunk) {
      return isSent(resultSent[chunk]);
    }
  }
}
