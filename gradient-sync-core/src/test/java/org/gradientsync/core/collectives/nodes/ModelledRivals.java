package org.gradientsync.core.collectives.nodes;

import java.util.Arrays;
import org.gradientsync.core.collectives.messages.Shards;

/**
 * Other all-reduces on the machine of {@link ModelledTwoLevel}, without a rendezvous. All of them
 * add what has come while more arrives. A message within a node costs a copy.
 */
final class ModelledRivals {
  /** Longer messages are divided, as those of {@code two-level} are. */
  private static final int SEGMENT_BYTES = TwoLevelSizes.MAX_CHUNK_BYTES;

  /** The chunks that NCCL lets a sender be ahead of its receiver. */
  private static final int NCCL_STEPS = 8;

  private static final int TREES = 2;

  /** Those of a tree, which has them at least this large. */
  private static final int CHUNKS = 16;

  private static final int MIN_CHUNK_BYTES = 4 << 10;
  private static final int STEP_SHIFT = 24;
  private static final int WHERE_SHIFT = 38;
  private static final int ELEMENT = ModelledTwoLevel.ELEMENT;

  private ModelledRivals() {}

  /**
   * A ring of all ranks: n-1 steps in which a piece of the sum moves on, and n-1 for its result.
   * The nodes do the same, so one stands for all.
   */
  static Modelled ring(ModelledMachine machine, int nodes, long count) {
    int perNode = machine.ranksPerNode();
    Pipeline pipeline = new Pipeline(machine, nodes, perNode, 1, 1);
    int steps = 2 * (nodes * perNode - 1);
    return pipeline.run(steps, steps / 2, ceil(count, (long) nodes * perNode) * ELEMENT, true);
  }

  /**
   * A ring of nodes for each rank of a node. A node adds the contributions of its ranks where they
   * lie, and each of them copies the results.
   */
  static Modelled nodeRing(ModelledMachine machine, int nodes, long count) {
    int perNode = machine.ranksPerNode();
    Pipeline pipeline = new Pipeline(machine, nodes, 1, perNode, perNode);
    long piece = ceil(count, (long) nodes * perNode) * ELEMENT;
    return pipeline.run(2 * (nodes - 1), nodes - 1, piece, true);
  }

  /**
   * Recursive doubling: in each step, ranks in twice the distance exchange all they have. Ranks of
   * nodes beyond a power of two first send what they have to others, and at last get the result.
   */
  static Modelled doubling(ModelledMachine machine, int nodes, long count) {
    int perNode = machine.ranksPerNode();
    if (Integer.bitCount(perNode) != 1) {
      throw new IllegalArgumentException("not a power of two: ranksPerNode=" + perNode);
    }
    int among = Integer.highestOneBit(nodes);
    Pipeline pipeline = new Pipeline(machine, among, perNode, 1, 1);
    int steps = Integer.numberOfTrailingZeros(among * perNode);
    Modelled model = pipeline.run(steps, steps, count * ELEMENT, false);
    if (among == nodes) {
      return model;
    }
    long hop = machine.latency() + 2 * machine.message();
    long message = hop + machine.linkTime(perNode * count * ELEMENT);
    long time = model.picoseconds() + 2 * message + machine.addTime(count * ELEMENT);
    long messages = model.messages() + ceil(count * ELEMENT, SEGMENT_BYTES);
    return new Modelled(time, messages, model.nodeMessages(), model.nodeBytes());
  }

  private static long ceil(long count, long parts) {
    return (count + parts - 1) / parts;
  }

  /** Equal steps of all members, in which a segment moves on as soon as it has come. */
  private static final class Pipeline {
    private final ModelledMachine machine;
    private final VirtualLinks links;
    private final int nodes;
    private final int members; // of a node
    private final int pipelines; // equal ones, of which one is simulated
    private final int contributions; // of a member
    private final long[] clocks;
    private int steps;
    private int additions; // the steps whose messages are sums
    private long bytes;
    private int segments;
    private boolean ring;

    Pipeline(ModelledMachine machine, int nodes, int members, int pipelines, int contributions) {
      this.machine = machine;
      this.nodes = nodes;
      this.members = members;
      this.pipelines = pipelines;
      this.contributions = contributions;
      links = new VirtualLinks(machine, 1);
      clocks = new long[members];
    }

    Modelled run(int newSteps, int newAdditions, long newBytes, boolean isRing) {
      steps = newSteps;
      additions = newAdditions;
      bytes = newBytes;
      ring = isRing;
      segments = Math.toIntExact(ceil(bytes, SEGMENT_BYTES));
      for (int member = 0; member < members; member++) {
        links.at(0, event(member, -1, 0));
      }
      links.run(
          (time, event) -> {
            int member = (int) (event >>> WHERE_SHIFT);
            int step = ((int) (event >>> STEP_SHIFT) & (1 << WHERE_SHIFT - STEP_SHIFT) - 1) - 1;
            int segment = (int) event & (1 << STEP_SHIFT) - 1;
            come(member, step, segment, time);
          });
      long end = Arrays.stream(clocks).max().orElseThrow();
      return new Modelled(end, (long) steps * segments, links.messages(), links.bytes());
    }

    private static long event(int member, int step, int segment) {
      return (long) member << WHERE_SHIFT | (long) (step + 1) << STEP_SHIFT | segment;
    }

    private long size(int segment) {
      return Math.min(SEGMENT_BYTES, bytes - (long) segment * SEGMENT_BYTES);
    }

    /** Handles what has come in a step, and sends it in the next one. */
    private void come(int member, int step, int segment, long time) {
      clocks[member] = Math.max(clocks[member], time);
      long size = size(segment);
      if (step >= 0) {
        clocks[member] += machine.message();
        if (step < additions) {
          clocks[member] += machine.addTime(contributions * size);
        }
      } else if (contributions > 1) {
        clocks[member] += machine.addTime(contributions * size);
      }
      if (step >= additions - 1 && contributions > 1) {
        clocks[member] += machine.copyTime((contributions - 1) * size);
      }
      if (step + 1 < steps) {
        send(member, step + 1, segment);
      }
      if (step < 0 && segment + 1 < segments) {
        links.at(clocks[member], event(member, step, segment + 1));
      }
    }

    private void send(int member, int step, int segment) {
      clocks[member] += machine.message();
      int to = ring ? (member + 1) % members : member ^ 1 << step;
      boolean far = nodes > 1 && (ring ? member + 1 == members : 1 << step >= members);
      long size = size(segment);
      if (far) {
        int same = ring ? to : member;
        links.send(0, 0, clocks[member], pipelines, pipelines * size, event(same, step, segment));
      } else {
        clocks[member] += machine.copyTime(size);
        links.at(clocks[member] + machine.flag(), event(to, step, segment));
      }
    }
  }

  /**
   * Two binary trees between nodes, as NCCL makes them. Each has half of the elements. Each node is
   * a leaf of one of them, but for the roots. Chunks of the sum go to the root, and results return.
   * (NVIDIA: NCCL, src/graph/trees.cc, ncclGetDtree. P. Sanders, J. Speck, J. L. Traff: Two-tree
   * algorithms for full bandwidth broadcast, reduction and scan. Parallel Computing 35(12), 2009.)
   *
   * <p>Within a node, contributions and results move as in {@link RunningSumPlan}. A node begins a
   * chunk of its own when at most {@value #NCCL_STEPS} have not left.
   */
  static Modelled tree(ModelledMachine machine, int nodes, long count) {
    return new Tree(machine, nodes, count).run();
  }

  /** The parent of each node in one of the trees; -1 for the root. */
  static int[] parents(int nodes, int tree) {
    int[] first = new int[nodes];
    first[0] = -1;
    for (int node = 1; node < nodes; node++) {
      int lowest = Integer.lowestOneBit(node);
      int above = node - lowest;
      int beside = above | lowest << 1;
      first[node] = beside < nodes ? beside : above;
    }
    if (tree == 0) {
      return first;
    }
    int[] second = new int[nodes];
    for (int node = 0; node < nodes; node++) {
      int other = nodes % 2 == 0 ? nodes - 1 - node : (node + nodes - 1) % nodes;
      int parent = first[other];
      second[node] = parent < 0 ? -1 : nodes % 2 == 0 ? nodes - 1 - parent : (parent + 1) % nodes;
    }
    return second;
  }

  /** Both trees. */
  private static final class Tree {
    private static final int UP = 0;
    private static final int DOWN = 1;
    private static final int BEGIN = 2;
    private static final int KIND_SHIFT = 38;
    private static final int NODE_SHIFT = 26;
    private static final int TREE_SHIFT = 24;

    private final ModelledMachine machine;
    private final int nodes;
    private final VirtualLinks links;
    private final int[][] parents = new int[TREES][];
    private final int[][][] children = new int[TREES][][];
    private final Shards shards; // of a tree
    private final int[][][] come; // contributions to each chunk on each node
    private final long[][][] left; // when the last messages of a leaf leave it
    private final long[] clocks;
    private final long[] messages;

    Tree(ModelledMachine machine, int nodes, long count) {
      this.machine = machine;
      this.nodes = nodes;
      links = new VirtualLinks(machine, nodes);
      int carriers = machine.ranksPerNode();
      long half = ceil(count, TREES);
      long bytes = Long.highestOneBit(Math.max(1, ceil(half, carriers) * ELEMENT / CHUNKS));
      long chunk = Math.min(SEGMENT_BYTES, Math.max(MIN_CHUNK_BYTES, bytes));
      shards = new Shards(half, carriers, chunk / ELEMENT);
      come = new int[TREES][nodes][shards.chunks()];
      left = new long[TREES][nodes][NCCL_STEPS];
      clocks = new long[nodes];
      messages = new long[nodes];
      for (int tree = 0; tree < TREES; tree++) {
        parents[tree] = parents(nodes, tree);
        children[tree] = new int[nodes][0];
        for (int node = 0; node < nodes; node++) {
          if (parents[tree][node] >= 0) {
            int[] siblings = children[tree][parents[tree][node]];
            siblings = Arrays.copyOf(siblings, siblings.length + 1);
            siblings[siblings.length - 1] = node;
            children[tree][parents[tree][node]] = siblings;
          }
        }
      }
    }

    Modelled run() {
      for (int tree = 0; tree < TREES; tree++) {
        for (int node = 0; node < nodes; node++) {
          if (children[tree][node].length == 0) {
            links.at(machine.flag(), event(BEGIN, node, tree, 0));
          }
        }
      }
      links.run(this::handle);
      return new Modelled(
          Arrays.stream(clocks).max().orElseThrow() + machine.flag(),
          Arrays.stream(messages).max().orElseThrow(),
          links.messages(),
          links.bytes());
    }

    private static long event(int kind, int node, int tree, int chunk) {
      return (long) kind << KIND_SHIFT
          | (long) node << NODE_SHIFT
          | (long) tree << TREE_SHIFT
          | chunk;
    }

    private void handle(long time, long event) {
      int kind = (int) (event >>> KIND_SHIFT);
      int node = (int) (event >>> NODE_SHIFT) & (1 << KIND_SHIFT - NODE_SHIFT) - 1;
      int tree = (int) (event >>> TREE_SHIFT) & TREES - 1;
      int chunk = (int) event & (1 << TREE_SHIFT) - 1;
      long size = shards.length(0, chunk) * ELEMENT;
      clocks[node] = Math.max(clocks[node], time);
      if (kind == BEGIN) {
        clocks[node] += machine.addTime(machine.ranksPerNode() * size);
        long sent = send(UP, node, parents[tree][node], tree, chunk);
        left[tree][node][chunk % NCCL_STEPS] = sent;
        if (chunk + 1 < shards.chunks()) {
          long room = left[tree][node][(chunk + 1) % NCCL_STEPS];
          links.at(Math.max(clocks[node], room), event(BEGIN, node, tree, chunk + 1));
        }
      } else if (kind == UP) {
        clocks[node] += machine.message() + machine.addTime(size);
        if (++come[tree][node][chunk] == children[tree][node].length) {
          clocks[node] += machine.addTime(machine.ranksPerNode() * size);
          if (parents[tree][node] >= 0) {
            send(UP, node, parents[tree][node], tree, chunk);
          } else {
            give(node, tree, chunk, size);
          }
        }
      } else {
        clocks[node] += machine.message();
        give(node, tree, chunk, size);
      }
    }

    /** Hands a result to the children and to the other ranks of the node. */
    private void give(int node, int tree, int chunk, long size) {
      for (int child : children[tree][node]) {
        send(DOWN, node, child, tree, chunk);
      }
      clocks[node] += machine.copyTime((machine.ranksPerNode() - 1) * size);
    }

    private long send(int kind, int from, int to, int tree, int chunk) {
      clocks[from] += machine.message();
      messages[from]++;
      int carriers = machine.ranksPerNode();
      long size = carriers * shards.length(0, chunk) * ELEMENT;
      return links.send(from, to, clocks[from], carriers, size, event(kind, to, tree, chunk));
    }
  }
}
