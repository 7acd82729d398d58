package org.gradientsync.core.sync;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

class RowUnionTest {
  private static final int RANKS = 3;

  @Test
  void findsWhatSortingFinds() {
    RowUnion union = new RowUnion(); // kept, with what it needed before
    SplittableRandom random = new SplittableRandom(1);
    for (long tableRows : new long[] {1, 7, 300, 30_000_000, 1L << 40, Long.MAX_VALUE}) {
      for (int most : new int[] {1, 5, 400, 20_000, 2}) {
        long[][] ranks = new long[RANKS][];
        for (int rank = 0; rank < RANKS; rank++) {
          ranks[rank] = random.longs(random.nextInt(most), 0, tableRows).toArray();
        }
        for (int rank = 0; rank < RANKS; rank++) {
          requireFound(union, ranks, rank, 0);
          requireFound(union, ranks, rank, 2);
        }
      }
    }
  }

  /** Before each rank's indices is some padding, which is never a row. */
  private static void requireFound(RowUnion union, long[][] ranks, int rank, int padding) {
    int total = Arrays.stream(ranks).mapToInt(indices -> indices.length).sum();
    long[] all = new long[total + RANKS * padding];
    Arrays.fill(all, -1);
    int at = 0;
    int mine = 0;
    union.begin(total);
    for (int peer = 0; peer < RANKS; peer++) {
      at += padding;
      mine = peer == rank ? at : mine;
      System.arraycopy(ranks[peer], 0, all, at, ranks[peer].length);
      union.add(at, ranks[peer].length);
      at += ranks[peer].length;
    }
    long[] expected =
        Arrays.stream(ranks).flatMapToLong(Arrays::stream).sorted().distinct().toArray();
    int own = ranks[rank].length;
    assertArrayEquals(expected, union.find(all, mine, own));
    int[] table = union.table();
    List<List<Integer>> sources = new ArrayList<>();
    for (int row = 0; row < expected.length; row++) {
      sources.add(new ArrayList<>());
    }
    for (int i = 0; i < own; i++) {
      sources.get(Arrays.binarySearch(expected, ranks[rank][i])).add(i);
    }
    for (int row = 0; row < expected.length; row++) {
      List<Integer> found = new ArrayList<>();
      for (int i = table[own + row]; i < table[own + row + 1]; i++) {
        found.add(table[i]);
      }
      assertEquals(sources.get(row), found);
    }
    assertEquals(own, table[own + expected.length]);
  }
}
