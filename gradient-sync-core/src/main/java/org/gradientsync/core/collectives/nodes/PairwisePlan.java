package org.gradientsync.core.collectives.nodes;

import org.gradientsync.core.collectives.messages.Shards;
import org.gradientsync.core.collectives.shared.NodeBuffers;
import org.gradientsync.core.ranks.RankMap;
import org.gradientsync.spi.Message;

/**
 * A pairwise exchange over several nodes with equally many ranks: each rank exchanges messages only
 * with the ranks that have its number on the other nodes. In each turn it sends one to a node and
 * receives one from another; in every M-th turn, on M nodes, its block is for its own node.
 */
abstract class PairwisePlan extends CarrierPlan {
  private static final int MIN_WINDOW = 8;

  final int nodes;
  final int turns;
  final Message[] sends; // by turn; null if there is none
  final Message[] receives;
  private final int window; // turns that are under way at the same time
  private int begun;
  private int sent;
  private int come;

  /**
   * @param shards the blocks that a node's ranks carry, in pieces
   * @param turns a multiple of the number of nodes
   */
  PairwisePlan(TwoLevelRanks ranks, NodeBuffers.Mapped buffers, Shards shards, int turns) {
    super(ranks, buffers, shards);
    nodes = layout.nodes();
    this.turns = turns;
    sends = new Message[turns];
    receives = new Message[turns];
    window = Math.max(MIN_WINDOW, 2 * nodes);
  }

  /** The node to which this one sends in a turn; its own number in the turn inside the node. */
  final int target(int turn) {
    return (layout.node() + turn) % nodes;
  }

  /** The node from which this one receives in a turn. */
  final int source(int turn) {
    return Math.floorMod(layout.node() - turn, nodes);
  }

  /** Prepares what is sent in a turn. */
  abstract void prepare(int turn);

  /** Takes what has come in a turn. */
  abstract void take(int turn);

  @Override
  final void begin() {
    begun = 0;
    sent = 0;
    come = 0;
  }

  @Override
  final boolean advance() {
    int before = begun + sent + come;
    while (begun < turns && begun - Math.min(sent, come) < window) {
      startIfAny(receives[begun]);
      prepare(begun);
      startIfAny(sends[begun]);
      begun++;
    }
    while (isNextSent()) {
      sent++;
    }
    if (hasNextCome()) {
      take(come++);
    }
    return begun + sent + come > before;
  }

  private boolean isNextSent() {
    return sent < begun && isDone(sends[sent]);
  }

  private boolean hasNextCome() {
    return come < begun && isDone(receives[come]);
  }

  @Override
  final boolean canAdvance() {
    return isNextSent() || hasNextCome();
  }

  @Override
  final boolean isCarried() {
    return sent == turns && come == turns;
  }

  @Override
  final int awaitedSender() {
    return come < begun ? carrier(source(come)) : RankMap.NO_RANK;
  }

  @Override
  final int awaitedReceiver() {
    return carrier(target(Math.min(sent, turns - 1)));
  }
}
