package org.gradientsync.core.sync;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

class RowUnionTest {
  @Test
  void findsWhatSortingFinds() {
    RowUnion[] unions = new RowUnion[7]; // kept, with what they needed before
    Arrays.setAll(unions, RowUnion::new);
    SplittableRandom random = new SplittableRandom(1);
    for (long tableRows : new long[] {1, 7, 300, 30_000_000, 1L << 40, Long.MAX_VALUE}) {
      for (int most : new int[] {1, 5, 400, 3_000, 2}) {
        for (int ranks = 1; ranks <= 6; ranks++) {
          long[][] indices = new long[ranks][];
          for (int rank = 0; rank < ranks; rank++) {
            indices[rank] = random.longs(random.nextInt(most), 0, tableRows).toArray();
          }
          Arrays.sort(indices[0]);
          for (int rank = 0; rank < ranks; rank += 2) {
            requireFound(unions[ranks], indices, rank);
          }
        }
      }
    }
  }

  @Test
  void numbersThatTheProgramHasMadeNegativeAreNoRows() {
    RowUnion union = new RowUnion(1);
    union.begin(3);
    long[] own = union.sort(new long[] {3, -9, 5, -1});
    assertArrayEquals(new long[] {3, 5, Long.MAX_VALUE - 1}, Arrays.copyOf(own, union.distinct()));
    assertArrayEquals(Arrays.copyOf(own, 3), union.find());
  }

  private static void requireFound(RowUnion union, long[][] ranks, int rank) {
    long[][] lists = new long[ranks.length][];
    int total = 0;
    for (int peer = 0; peer < ranks.length; peer++) {
      lists[peer] = Arrays.stream(ranks[peer]).sorted().distinct().toArray();
      total += lists[peer].length;
    }
    assertArrayEquals(lists[rank], Arrays.copyOf(union.sort(ranks[rank]), union.distinct()));
    union.begin(total);
    for (int peer = 0; peer < ranks.length; peer++) {
      if (peer != rank) {
        union.add(lists[peer].length).put(lists[peer]);
      }
    }
    long[] expected =
        Arrays.stream(lists).flatMapToLong(Arrays::stream).sorted().distinct().toArray();
    int own = ranks[rank].length;
    assertArrayEquals(expected, union.find());
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
