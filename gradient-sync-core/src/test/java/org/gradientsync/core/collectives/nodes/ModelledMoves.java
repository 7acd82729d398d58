package org.gradientsync.core.collectives.nodes;

import java.util.Arrays;
import org.gradientsync.core.collectives.messages.Shards;
import org.gradientsync.spi.CollectiveCall.Kind;

/**
 * Collectives of {@code two-level} that add nothing, in virtual time, of float32, on nodes with
 * equally many ranks, without the rendezvous; none that travels with the calls. The parts that are
 * sent, and to whom, are those of real runs: {@link TwoLevelSizes}, {@link ResultTrees}, {@link
 * HalvingRounds}, {@link Shards}. The carriers of a node do the same at the same time, as in {@link
 * ModelledTwoLevel}.
 */
final class ModelledMoves {
  private static final int ELEMENT = ModelledTwoLevel.ELEMENT;
  private static final int NODE_SHIFT = 24;
  private static final int MAX_PIECE = (16 << 20) / ELEMENT; // of what goes straight

  private final ModelledMachine machine;
  private final int nodes;
  private final int perNode;
  private final VirtualLinks links;
  private final long[] clocks;

  private ModelledMoves(ModelledMachine machine, int nodes, int simulated) {
    this.machine = machine;
    this.nodes = nodes;
    perNode = machine.ranksPerNode();
    links = new VirtualLinks(machine, simulated);
    clocks = new long[simulated];
  }

  /** From a rank of the last node. See {@link BroadcastTreesPlan}. */
  static Modelled broadcast(ModelledMachine machine, int nodes, TwoLevelSizes sizes, long count) {
    ModelledMoves model = new ModelledMoves(machine, nodes, nodes);
    return model.broadcast(sizes.broadcast(nodes, count, ELEMENT, machine.ranksPerNode()));
  }

  private Modelled broadcast(Shards shards) {
    ResultTrees[] trees = new ResultTrees[nodes];
    Arrays.setAll(trees, node -> new ResultTrees(nodes, node));
    int root = nodes - 1;
    links.at(0, event(root, 0));
    links.run(
        (time, event) -> {
          int node = (int) (event >>> NODE_SHIFT);
          int chunk = (int) event & (1 << NODE_SHIFT) - 1;
          long size = shards.length(0, chunk) * ELEMENT;
          clocks[node] = Math.max(clocks[node], time);
          clocks[node] += node == root ? machine.copyTime(size) : machine.message();
          for (int child : trees[node].children(chunk)) {
            clocks[node] += machine.message();
            send(node, child, shards, chunk);
          }
          clocks[node] += machine.copyTime((perNode - 1) * size);
          if (node == root && chunk + 1 < shards.chunks()) {
            links.at(clocks[root], event(root, chunk + 1));
          }
        });
    return result();
  }

  private static long event(int node, int chunk) {
    return (long) node << NODE_SHIFT | chunk;
  }

  private void send(int from, int to, Shards shards, int chunk) {
    int filled = 0;
    long bytes = 0;
    for (int shard = 0; shard < shards.ranks(); shard++) {
      filled += shards.length(shard, chunk) > 0 ? 1 : 0;
      bytes += shards.length(shard, chunk) * ELEMENT;
    }
    links.send(from, to, clocks[from], filled, bytes, event(to, chunk));
  }

  /** See {@link AllGatherPlan} and {@link GatherRoundsPlan}. */
  static Modelled allGather(ModelledMachine machine, int nodes, TwoLevelSizes sizes, long block) {
    ModelledMoves model = new ModelledMoves(machine, nodes, 1);
    if (TwoLevelSizes.gathersInRounds(nodes, block * ELEMENT, model.perNode)) {
      return model.inRounds(block * ELEMENT);
    }
    Shards pieces = sizes.pieces(block, ELEMENT, model.perNode);
    return model.toAllNodes(pieces, 1, 0, model.perNode - 1);
  }

  private Modelled inRounds(long block) {
    HalvingRounds rounds = new HalvingRounds(nodes, 0);
    clocks[0] = machine.copyTime((perNode + 1) * block);
    for (int round = rounds.count() - 1; round >= 0; round--) {
      long size = rounds.sent(round) * block;
      clocks[0] += machine.message();
      links.send(0, 0, clocks[0], perNode, perNode * size, 0);
      links.run(
          (time, event) -> {
            clocks[0] = Math.max(clocks[0], time);
            clocks[0] += machine.message() + machine.copyTime(perNode * size);
          });
    }
    return result();
  }

  /**
   * Of small blocks, see {@link ExchangePlan} and {@link AllToAllPlan}; larger ones go straight.
   */
  static Modelled allToAll(ModelledMachine machine, int nodes, long block) {
    int perNode = machine.ranksPerNode();
    Shards input = new Shards(nodes * perNode * block, perNode, nodes * block);
    if (TwoLevelSizes.collects(block * ELEMENT)
        && TwoLevelSizes.passesBlocksOn(nodes, input, ELEMENT)) {
      VirtualLinks links = new VirtualLinks(machine, nodes);
      ExchangeRounds rounds = TwoLevelSizes.exchange(nodes, input, ELEMENT);
      long[] messages = new long[1];
      ModelledBlocks blocks =
          new ModelledBlocks(machine, links, input, nodes, rounds, Kind.ALL_TO_ALL);
      long end = blocks.run(new long[nodes], messages);
      return new Modelled(end, messages[0], links.messages(), links.bytes());
    }
    ModelledMoves model = new ModelledMoves(machine, nodes, 1);
    return TwoLevelSizes.collects(block * ELEMENT)
        ? model.toAllNodes(new Shards(perNode * block, 1, Shards.WHOLE), 1, 1, 0)
        : model.toAllNodes(new Shards(block, 1, MAX_PIECE), perNode, 0, 0);
  }

  /**
   * Each rank sends what its shard has to ranks of all other nodes. All nodes do the same, so one
   * of them stands for all.
   *
   * @param receivers on each node
   * @param before copies of what is sent
   * @param after copies of what has come
   */
  private Modelled toAllNodes(Shards pieces, int receivers, int before, int after) {
    for (int piece = 0; piece < pieces.chunks(); piece++) {
      long size = pieces.length(0, piece) * ELEMENT;
      for (int to = 0; to < (nodes - 1) * receivers; to++) {
        clocks[0] += machine.copyTime(before * size) + machine.message();
        links.send(0, 0, clocks[0], perNode, perNode * size, size);
      }
      clocks[0] += machine.copyTime(receivers * (1 + after) * size); // at home
    }
    links.run(
        (time, size) -> {
          clocks[0] = Math.max(clocks[0], time);
          clocks[0] += machine.message() + machine.copyTime(after * size);
        });
    return result();
  }

  private Modelled result() {
    long end = Arrays.stream(clocks).max().orElseThrow() + machine.flag();
    long messages = Arrays.stream(links.messages()).max().orElseThrow() / perNode;
    return new Modelled(end, messages, links.messages(), links.bytes());
  }
}
