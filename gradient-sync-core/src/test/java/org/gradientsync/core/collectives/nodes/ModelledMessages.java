package org.gradientsync.core.collectives.nodes;

import java.util.Arrays;
import org.gradientsync.core.collectives.messages.AllReducePlan;
import org.gradientsync.core.collectives.messages.MessageReducer;
import org.gradientsync.core.collectives.messages.Shards;
import org.gradientsync.spi.ReducerParts;

/**
 * An {@link AllReducePlan} in virtual time, of float32 in one chunk: each rank sends a message to
 * each owner of a shard, in rank order, and each owner returns the result to each rank.
 */
final class ModelledMessages {
  private static final int KIND_SHIFT = 36;
  private static final int RANK_SHIFT = 18;

  /** Contributions come first, then results: of each, a rank sends all before it looks for any. */
  private static final int CONTRIBUTIONS = 0;

  private static final int RESULTS = 1;
  private static final int ARRIVED = 2; // added to them

  private final ModelledMachine machine;
  private final VirtualLinks links;
  private final int perNode;
  private final int ranks;
  private final int owners;
  private final long[] bytes; // of each shard
  private final long[] clocks;
  private final int[][] lacking; // messages of each kind that a rank has not come to
  private final int[][] early; // messages of each kind that arrived before the rank looks
  private final boolean[][] looks;

  ModelledMessages(ModelledMachine machine, int nodes, long count, VirtualLinks links) {
    this.machine = machine;
    this.links = links;
    perNode = machine.ranksPerNode();
    ranks = nodes * perNode;
    int element = ModelledTwoLevel.ELEMENT;
    long chunk = MessageReducer.chunk(count, element, ranks, ReducerParts.HOST_CHUNK_BYTES);
    Shards shards = new Shards(count, ranks, chunk);
    if (shards.chunks() > 1) {
      throw new IllegalArgumentException("more than one chunk is not modelled: count=" + count);
    }
    bytes = new long[ranks];
    for (int rank = 0; rank < ranks; rank++) {
      bytes[rank] = shards.length(rank, 0) * element;
    }
    owners = (int) Arrays.stream(bytes).filter(each -> each > 0).count();
    clocks = new long[ranks];
    lacking = new int[2][ranks];
    early = new int[2][ranks];
    looks = new boolean[2][ranks];
  }

  /** The number of messages that the first rank sends. */
  long most() {
    return owners - 1L + ranks - 1;
  }

  /**
   * Returns when the last rank has all results.
   *
   * @param begins when the ranks of each node begin
   */
  long run(long[] begins) {
    for (int rank = 0; rank < ranks; rank++) {
      boolean owns = rank < owners;
      lacking[CONTRIBUTIONS][rank] = owns ? ranks - 1 : 0;
      lacking[RESULTS][rank] = owners - (owns ? 1 : 0);
      clocks[rank] = begins[rank / perNode];
      prepare(CONTRIBUTIONS, rank, 0);
    }
    links.run(this::handle);
    if (Arrays.stream(lacking[RESULTS]).anyMatch(some -> some > 0)) {
      throw new AssertionError("a rank waits for ever");
    }
    return Arrays.stream(clocks).max().orElseThrow();
  }

  private static long event(int kind, int rank, int peer) {
    return (long) kind << KIND_SHIFT | (long) rank << RANK_SHIFT | peer;
  }

  private void handle(long time, long event) {
    int kind = (int) (event >>> KIND_SHIFT);
    int rank = (int) (event >>> RANK_SHIFT) & (1 << RANK_SHIFT) - 1;
    int peer = (int) event & (1 << RANK_SHIFT) - 1;
    if (kind >= ARRIVED) {
      arrive(kind - ARRIVED, rank, time);
    } else {
      send(kind, rank, peer, time);
      prepare(kind, rank, peer + 1);
    }
  }

  /** Lets a core prepare the message to the next peer. Without one, the rank looks for messages. */
  private void prepare(int kind, int rank, int from) {
    int peer = from == rank ? from + 1 : from;
    boolean sends = kind == CONTRIBUTIONS || rank < owners;
    if (sends && peer < (kind == CONTRIBUTIONS ? owners : ranks)) {
      clocks[rank] += machine.message();
      links.at(clocks[rank], event(kind, rank, peer));
    } else {
      looks[kind][rank] = true;
      take(kind, rank, early[kind][rank]);
    }
  }

  private void send(int kind, int rank, int peer, long time) {
    long size = bytes[kind == CONTRIBUTIONS ? peer : rank];
    int from = rank / perNode;
    int to = peer / perNode;
    long arrival = event(kind + ARRIVED, peer, rank);
    if (from == to) {
      links.at(time + machine.flag() + machine.copyTime(size), arrival);
    } else {
      links.send(from, to, time, 1, size, arrival);
    }
  }

  private void arrive(int kind, int rank, long time) {
    if (looks[kind][rank]) {
      clocks[rank] = Math.max(clocks[rank], time);
      take(kind, rank, 1);
    } else {
      early[kind][rank]++;
    }
  }

  private void take(int kind, int rank, int count) {
    clocks[rank] += count * machine.message();
    lacking[kind][rank] -= count;
    if (kind == CONTRIBUTIONS && lacking[kind][rank] == 0) {
      clocks[rank] += rank < owners ? machine.addTime(ranks * bytes[rank]) : 0;
      prepare(RESULTS, rank, 0);
    }
  }
}
