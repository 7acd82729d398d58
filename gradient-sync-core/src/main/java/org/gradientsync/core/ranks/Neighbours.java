package org.gradientsync.core.ranks;

import java.util.stream.IntStream;

/**
 * The ranks to which a rank of a group sends notices, and with which it meets before the group's
 * rendezvous is chosen. In a small group they are all others; in a large one, those whose distance
 * is a power of two, so that connections and messages grow with the logarithm of the ranks. Ranks
 * are neighbours of their neighbours.
 */
public final class Neighbours {
  private static final int ALL = 16;

  private Neighbours() {}

  public static boolean areAll(int size) {
    return size <= ALL;
  }

  /** The neighbours of a rank in ascending order. */
  public static int[] of(int rank, int size) {
    return IntStream.range(1, size)
        .filter(distance -> areAll(size) || Integer.bitCount(distance) == 1)
        .flatMap(distance -> IntStream.of(rank + distance, rank - distance + size))
        .map(peer -> peer % size)
        .distinct()
        .sorted()
        .toArray();
  }
}
