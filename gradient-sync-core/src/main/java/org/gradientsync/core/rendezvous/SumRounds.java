package org.gradientsync.core.rendezvous;

import java.util.Map;
import java.util.TreeMap;

/**
 * Which sums over nodes a leader has, sends and adds in each round of a {@link LeaderExchange}.
 *
 * <p>In each round it sends one sum, over the nodes whose calls it has. All leaders that get the
 * same calls in a round add the sums that come with them in the order of nodes, so they have the
 * same bits. Each sum has a slot.
 */
public final class SumRounds {
  private final int[] sums; // what is sent in each round, and after the last one the total
  private final int[][] taken; // in each round, by source
  private final int[][] parts;
  private int slots;

  public SumRounds(int nodes, int node) {
    LeaderRounds rounds = new LeaderRounds(nodes, node);
    int last = rounds.count();
    sums = new int[last + 1];
    taken = new int[last][];
    parts = new int[last][];
    sums[0] = slots++;
    for (int round = 0; round < last; round++) {
      int[] sources = rounds.sources(round);
      taken[round] = new int[sources.length];
      Map<Integer, Integer> row = new TreeMap<>(); // slots by first node
      boolean hasOwn = false;
      for (int i = 0; i < sources.length; i++) {
        LeaderRounds source = rounds.of(sources[i]);
        int first = source.first(round);
        taken[round][i] = slots++;
        row.put(first, taken[round][i]);
        hasOwn |= first <= node && node < first + source.blocks(round);
      }
      if (!hasOwn) {
        row.put(rounds.first(round), sums[round]);
      }
      parts[round] = row.values().stream().mapToInt(slot -> slot).toArray();
      sums[round + 1] = sources.length == 0 ? sums[round] : slots++;
    }
  }

  /** The number of rounds. */
  public int count() {
    return parts.length;
  }

  /** The number of slots. This node's sum is in slot 0. */
  public int slots() {
    return slots;
  }

  /** The slot of what is sent in a round; after the last one, that of the sum over all nodes. */
  public int sum(int round) {
    return sums[round];
  }

  /** The slots of what is received in a round, by source. */
  public int[] taken(int round) {
    return taken[round];
  }

  /** The slots of what gives the sum after a round, lower nodes first. One if nothing has come. */
  public int[] parts(int round) {
    return parts[round];
  }
}
