package org.gradientsync.core.collectives.nodes;

import org.gradientsync.DeviceBuffer;
import org.gradientsync.core.collectives.messages.Shards;
import org.gradientsync.core.collectives.shared.NodeBuffers;
import org.gradientsync.core.host.HostBuffer;
import org.gradientsync.core.ranks.Channel;
import org.gradientsync.core.ranks.RankMap;
import org.gradientsync.spi.Message;

/**
 * An all-gather of small blocks over many nodes with equally many ranks. The ranks with the same
 * number on all nodes gather their blocks by doubling, as {@link HalvingRounds} say: log M messages
 * of several blocks, where an {@link AllGatherPlan} sends M-1. A node's ranks copy what has come
 * from each other's outputs.
 */
final class GatherRoundsPlan extends CarrierPlan {
  private final HalvingRounds geometry;
  private final int rounds;
  private final Message[] sends;
  private final Message[] receives;
  private final Copies[] copies; // before the first round, and after each
  private int come;
  private int sent;

  /**
   * @param buffers the outputs of this node's ranks
   * @param shards a node's blocks
   * @param in this rank's block, which may be in its place in the output
   * @param scratch a block of each node
   */
  GatherRoundsPlan(
      TwoLevelRanks ranks,
      NodeBuffers.Mapped buffers,
      Shards shards,
      HostBuffer in,
      DeviceBuffer scratch) {
    super(ranks, buffers, shards);
    int nodes = layout.nodes();
    geometry = new HalvingRounds(nodes, layout.node());
    rounds = geometry.count();
    sends = new Message[rounds];
    receives = new Message[rounds];
    copies = new Copies[rounds + 1];
    long[][] first = new long[shards.ranks()][nodes];
    long[][] length = new long[shards.ranks()][nodes];
    for (int shard = 0; shard < shards.ranks(); shard++) {
      for (int i = 0; i < nodes; i++) {
        first[shard][i] = (layout.node() + i) % nodes * shards.count() + shards.first(shard, 0);
        length[shard][i] = in.count();
      }
      divide(shard, first[shard], length[shard]);
    }
    long block = in.count();
    HostBuffer out = buffers.of(localRank);
    copies[0] = new Copies();
    copies[0].add(in, scratch.slice(0, block));
    if (!in.overlaps(out)) {
      copies[0].add(in, out.slice(first[localRank][0], block));
    }
    for (int step = 0; step < rounds; step++) {
      int round = rounds - 1 - step;
      int keep = geometry.keep(round);
      DeviceBuffer given = scratch.slice(0, geometry.sent(round) * block);
      DeviceBuffer taken = scratch.slice(keep * block, given.count());
      sends[step] = message(given, carrier(geometry.below(round)), Channel.GATHER, true);
      receives[step] = message(taken, carrier(geometry.above(round)), Channel.GATHER, false);
      copies[step + 1] = new Copies();
      for (int i = keep; i < geometry.size(round); i++) {
        copies[step + 1].add(
            scratch.slice(i * block, block), out.slice(first[localRank][i], block));
      }
    }
  }

  @Override
  void begin() {
    come = 0;
    sent = 0;
    for (Message receive : receives) {
      startIfAny(receive);
    }
    take();
  }

  /** Shows what has come to this node, and sends it in the next round. */
  private void take() {
    if (come < rounds) {
      startIfAny(sends[come]);
    }
    copies[come].run();
    publish(geometry.size(rounds - come));
  }

  @Override
  boolean advance() {
    boolean any = hasNextCome();
    if (any) {
      come++;
      take();
    }
    for (; isNextSent(); sent++) {
      any = true;
    }
    return any;
  }

  private boolean hasNextCome() {
    return come < rounds && isDone(receives[come]);
  }

  private boolean isNextSent() {
    return sent < Math.min(come + 1, rounds) && isDone(sends[sent]);
  }

  @Override
  boolean canAdvance() {
    return hasNextCome() || isNextSent();
  }

  @Override
  boolean isCarried() {
    return come == rounds && sent == rounds;
  }

  @Override
  int awaitedSender() {
    return come < rounds ? carrier(geometry.above(rounds - 1 - come)) : RankMap.NO_RANK;
  }

  @Override
  int awaitedReceiver() {
    return carrier(geometry.below(rounds - 1 - Math.min(sent, rounds - 1)));
  }
}
