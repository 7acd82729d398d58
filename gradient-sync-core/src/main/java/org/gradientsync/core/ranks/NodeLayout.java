package org.gradientsync.core.ranks;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.IntUnaryOperator;

/**
 * How the ranks of a group lie on nodes. Nodes are numbered in the order of their first rank. It
 * depends only on the placement, so all ranks compute the same.
 */
public final class NodeLayout {
  private final RankMap ranks;
  private final List<List<Integer>> nodes = new ArrayList<>();
  private final int[] nodeOf;
  private final int[] localRanks;

  public NodeLayout(RankMap ranks) {
    this(ranks, ranks::nodeOf);
  }

  private NodeLayout(RankMap ranks, IntUnaryOperator idOfNode) {
    this.ranks = ranks;
    nodeOf = new int[ranks.size()];
    localRanks = new int[ranks.size()];
    Map<Integer, Integer> ids = new HashMap<>();
    for (int peer = 0; peer < ranks.size(); peer++) {
      int node = ids.computeIfAbsent(idOfNode.applyAsInt(peer), id -> ids.size());
      if (node == nodes.size()) {
        nodes.add(new ArrayList<>());
      }
      nodeOf[peer] = node;
      localRanks[peer] = nodes.get(node).size();
      nodes.get(node).add(peer);
    }
  }

  /** As if each rank were alone on its node. */
  public static NodeLayout ofSingles(RankMap ranks) {
    return new NodeLayout(ranks, peer -> peer);
  }

  /** The number of nodes, 1 or more. */
  public int nodes() {
    return nodes.size();
  }

  /** This rank's node. */
  public int node() {
    return nodeOf(ranks.rank());
  }

  /** The node of a rank. */
  public int nodeOf(int peer) {
    return nodeOf[peer];
  }

  /** The ranks of a node in ascending order. */
  public List<Integer> ranksOf(int node) {
    return nodes.get(node);
  }

  /** This rank's number on its node. */
  public int localRank() {
    return localRank(ranks.rank());
  }

  /** The number of a rank on its node. */
  public int localRank(int peer) {
    return localRanks[peer];
  }

  /** Whether the ranks of each node follow one another, so that rank order is node order. */
  public boolean isContiguous() {
    for (int peer = 1; peer < nodeOf.length; peer++) {
      if (nodeOf[peer] < nodeOf[peer - 1]) {
        return false;
      }
    }
    return true;
  }

  /** The number of ranks on the node with the fewest. */
  public int fewest() {
    return nodes.stream().mapToInt(List::size).min().orElseThrow();
  }

  /** The number of ranks on the node with the most. */
  public int most() {
    return nodes.stream().mapToInt(List::size).max().orElseThrow();
  }
}
