package org.gradientsync.core.ranks;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;

/**
 * How the ranks of a group lie on nodes. Nodes are numbered in the order of their first rank. It
 * depends only on the placement, so all ranks compute the same.
 */
public record NodeLayout(
    int rank, List<List<Integer>> ranksByNode, int[] nodeByRank, int[] localRanks) {
  public NodeLayout(RankMap ranks) {
    this(ranks.rank(), new ArrayList<>(), new int[ranks.size()], new int[ranks.size()]);
    Map<Integer, Integer> ids = new HashMap<>();
    for (int peer = 0; peer < ranks.size(); peer++) {
      int node = ids.computeIfAbsent(ranks.nodeOf(peer), id -> ids.size());
      if (node == ranksByNode.size()) {
        ranksByNode.add(new ArrayList<>());
      }
      nodeByRank[peer] = node;
      localRanks[peer] = ranksByNode.get(node).size();
      ranksByNode.get(node).add(peer);
    }
    ranksByNode.replaceAll(List::copyOf);
  }

  /** As if each rank were alone on its node. */
  public static NodeLayout ofSingles(RankMap ranks) {
    List<List<Integer>> nodes = ranks.all().stream().map(List::of).toList();
    int[] all = IntStream.range(0, ranks.size()).toArray();
    return new NodeLayout(ranks.rank(), nodes, all, new int[ranks.size()]);
  }

  public int nodes() {
    return ranksByNode.size();
  }

  public int node() {
    return nodeOf(rank);
  }

  public int nodeOf(int peer) {
    return nodeByRank[peer];
  }

  public List<Integer> ranksOf(int node) {
    return ranksByNode.get(node);
  }

  public int localRank() {
    return localRank(rank);
  }

  public int localRank(int peer) {
    return localRanks[peer];
  }

  /** Whether the ranks of each node follow one another, so that rank order is node order. */
  public boolean isContiguous() {
    return IntStream.range(1, nodeByRank.length)
        .allMatch(peer -> nodeByRank[peer] >= nodeByRank[peer - 1]);
  }

  public int fewest() {
    return ranksByNode.stream().mapToInt(List::size).min().orElseThrow();
  }

  public int most() {
    return ranksByNode.stream().mapToInt(List::size).max().orElseThrow();
  }
}
