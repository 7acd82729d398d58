package org.gradientsync.core.rendezvous;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Which sums over nodes a leader has, sends and adds in each round of a {@link LeaderExchange}.
 *
 * <p>A sum over all nodes is a binary tree over their numbers: sums of two nodes, of four, and so
 * on, the lower nodes on the left. All leaders add along this tree, so they get the same bits. What
 * a leader has is a row of nodes, and it sends the largest subtrees of that row: one if the number
 * of nodes is a power of two, otherwise up to two of each size.
 */
public final class SumTree {
  private final int nodes;
  private final int[][] given; // slots by round
  private final int[][] taken;
  private final int[][][] additions; // before each round and after the last one: left, right, sum
  private final Map<Long, Integer> slots = new HashMap<>(); // of the subtrees that this leader has
  private final List<int[]> pending = new ArrayList<>();
  private int count;
  private final int total;

  public SumTree(int nodes, int node) {
    this.nodes = nodes;
    LeaderRounds rounds = new LeaderRounds(nodes, node);
    int last = rounds.count();
    given = new int[last][];
    taken = new int[last][];
    additions = new int[last + 1][][];
    slots.put(key(0, node), count++);
    for (int round = 0; round < last; round++) {
      int[][] own = subtrees(rounds.first(round), LeaderRounds.distance(round));
      given[round] = Arrays.stream(own).mapToInt(subtree -> slot(subtree[0], subtree[1])).toArray();
      additions[round] = pending.toArray(int[][]::new);
      pending.clear();
      int[][] other = subtrees(rounds.ofSource(round).first(round), LeaderRounds.distance(round));
      taken[round] = new int[other.length];
      for (int i = 0; i < other.length; i++) {
        taken[round][i] = count++; // a sum that is already there has the same bits
        slots.putIfAbsent(key(other[i][0], other[i][1]), taken[round][i]);
      }
    }
    total = slot(last, 0);
    additions[last] = pending.toArray(int[][]::new);
  }

  private static long key(int level, int index) {
    return (long) level << Integer.SIZE | index;
  }

  /** The largest subtrees of a row of nodes, which may go on with node 0: level and index. */
  private int[][] subtrees(int first, int length) {
    List<int[]> all = new ArrayList<>();
    add(all, first, Math.min(nodes, first + length));
    add(all, 0, Math.max(0, first + length - nodes));
    return all.toArray(int[][]::new);
  }

  private void add(List<int[]> all, int first, int end) {
    for (int at = first; at < end; ) {
      int level = 0;
      while (1 << level < nodes
          && at % (2 << level) == 0
          && Math.min(nodes, at + (2 << level)) <= end) {
        level++;
      }
      all.add(new int[] {level, at >> level});
      at += 1 << level;
    }
  }

  /** The slot of a subtree, which may have to be added. */
  private int slot(int level, int index) {
    Integer known = slots.get(key(level, index));
    if (known != null) {
      return known;
    }
    int left = slot(level - 1, 2 * index);
    int sum = left;
    if ((2 * index + 1) << (level - 1) < nodes) {
      int right = slot(level - 1, 2 * index + 1);
      sum = count++;
      pending.add(new int[] {left, right, sum});
    }
    slots.put(key(level, index), sum);
    return sum;
  }

  public int rounds() {
    return given.length;
  }

  /** The number of sums that a leader holds. This node's is in slot 0. */
  public int slots() {
    return count;
  }

  public int[] given(int round) {
    return given[round];
  }

  public int[] taken(int round) {
    return taken[round];
  }

  /** Before a round, or after the last one: slots of two sums, lower nodes first, and of theirs. */
  public int[][] additions(int round) {
    return additions[round];
  }

  /** The slot of the sum over all nodes, after all additions. */
  public int total() {
    return total;
  }
}
