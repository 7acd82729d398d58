package org.gradientsync.core.sync;

import java.util.Arrays;

/**
 * Finds the rows of a table that any rank has, and which rows of its own a rank adds up for each.
 * Sorts places in an array of indices digit by digit, which keeps the order of equal ones. What it
 * needs for that is kept. Not thread-safe.
 */
final class RowUnion {
  private static final int LEAST_DIGIT = 4; // bits
  private static final int MOST_DIGIT = 13; // its counters fit into the first cache

  private final int[] counters = new int[1 << MOST_DIGIT];
  private int[] places = new int[0];
  private int[] sorted = new int[0];
  private int[] table = new int[0];
  private int count;

  /** Begins anew, with room for some indices. */
  void begin(int room) {
    count = 0;
    if (places.length < room) {
      places = new int[room];
      sorted = new int[room];
    }
  }

  /** Adds the places of a rank's indices. The ranks come in rank order. */
  void add(int first, int rows) {
    for (int i = 0; i < rows; i++) {
      places[count++] = first + i;
    }
  }

  /**
   * Returns the indices at all places, in ascending order, each once, and makes the {@link #table}.
   *
   * @param indices the indices of all ranks, from 0
   * @param first the place of this rank's first index
   * @param own the number of this rank's indices
   */
  long[] find(long[] indices, int first, int own) {
    sort(indices);
    if (table.length < own + count + 1) {
      table = new int[own + count + 1];
    }
    long[] union = new long[count];
    int rows = 0;
    int sources = 0;
    long last = -1;
    for (int i = 0; i < count; i++) {
      int place = places[i];
      long index = indices[place];
      if (index != last) {
        last = index;
        table[own + rows] = sources;
        union[rows++] = index;
      }
      if (place >= first && place - first < own) {
        table[sources++] = place - first;
      }
    }
    table[own + rows] = sources;
    return rows == count ? union : Arrays.copyOf(union, rows);
  }

  /**
   * What {@link #find} made: the numbers of this rank's rows, in the order of the union and equal
   * ones in their own; then for each row of the union how many of these come before its own; and at
   * the end how many there are.
   *
   * @return not a copy, possibly longer
   */
  int[] table() {
    return table;
  }

  private void sort(long[] indices) {
    long all = 0;
    for (int i = 0; i < count; i++) {
      all |= indices[places[i]];
    }
    int bits = Long.SIZE - Long.numberOfLeadingZeros(all);
    int most = Integer.SIZE - Integer.numberOfLeadingZeros(count);
    most = Math.max(LEAST_DIGIT, Math.min(MOST_DIGIT, most));
    int passes = (bits + most - 1) / most;
    for (int pass = 0; pass < passes; pass++) {
      int digit = (bits + passes - 1) / passes; // as equal as can be
      sort(indices, pass * digit, (1 << digit) - 1);
    }
  }

  private void sort(long[] indices, int shift, int mask) {
    Arrays.fill(counters, 0, mask + 1, 0);
    for (int i = 0; i < count; i++) {
      counters[(int) (indices[places[i]] >>> shift) & mask]++;
    }
    int at = 0;
    for (int value = 0; value <= mask; value++) {
      int equal = counters[value];
      counters[value] = at;
      at += equal;
    }
    for (int i = 0; i < count; i++) {
      int place = places[i];
      sorted[counters[(int) (indices[place] >>> shift) & mask]++] = place;
    }
    int[] before = places;
    places = sorted;
    sorted = before;
  }
}
