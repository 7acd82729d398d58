package org.gradientsync.core.sync;

import java.nio.LongBuffer;
import java.util.Arrays;

/**
 * Finds the rows of a table that any rank has, and which rows of its own a rank adds up for each.
 * Each rank {@linkplain #sort sorts} its own indices digit by digit, which keeps the order of equal
 * ones, and merges the {@linkplain #add lists} of all. The long loops have no branches that depend
 * on indices, because processors cannot predict these. Memory is kept. Not thread-safe.
 */
final class RowUnion {
  private static final long END = Long.MAX_VALUE; // follows a list; indices are less
  private static final int MOST_DIGIT = 11; // bits; its counters fit into the first cache

  private final int[] counters = new int[1 << MOST_DIGIT];
  private long[] keys = new long[0]; // bits of an index, then its place
  private long[] sorted = new long[0];
  private long[] own = new long[0]; // this rank's list
  private int[] starts = new int[0]; // where the places of its indices begin in the table
  private int count; // of this rank's indices
  private int distinct;
  private int[] table = new int[0];
  private long[] lists = new long[0]; // of the other ranks
  private final int[] ends; // of these
  private int others;
  private long[] merged = new long[0];
  private int[] taken = new int[0]; // from the first list, before each that was merged

  RowUnion(int ranks) {
    ends = new int[ranks + 1];
  }

  /**
   * Starts a union with this rank's indices. Returns its own list, in an array that may be longer.
   */
  long[] sort(long[] indices) {
    count = indices.length;
    if (own.length <= count) {
      keys = new long[count];
      sorted = new long[count];
      own = new long[count + 1];
      starts = new int[count + 1];
    }
    if (table.length < count) {
      table = new int[count];
    }
    int placeBits = Integer.SIZE - Integer.numberOfLeadingZeros(count);
    sortKeys(indices, placeBits);
    distinct = 0;
    long last = END;
    for (int i = 0; i < count; i++) {
      int place = (int) keys[i] & ((1 << placeBits) - 1);
      long index = indices[place] < 0 ? END - 1 : indices[place]; // changed meanwhile: no row
      table[i] = place;
      if (index != last) {
        own[distinct] = index;
        starts[distinct++] = i;
        last = index;
      }
    }
    own[distinct] = END;
    starts[distinct] = count;
    return own;
  }

  /** How many indices this rank's list has. */
  int distinct() {
    return distinct;
  }

  /** Sorts as many bits at a time as a key has for them: usually all. */
  private void sortKeys(long[] indices, int placeBits) {
    long all = 0;
    long last = 0;
    boolean ascending = true;
    for (long index : indices) {
      all |= index;
      ascending &= index >= last;
      last = index;
    }
    int bits = ascending ? 0 : Long.SIZE - Long.numberOfLeadingZeros(all);
    int most = Long.SIZE - placeBits;
    for (int first = 0; first == 0 || first < bits; first += most) {
      for (int i = 0; i < count; i++) {
        int place = first == 0 ? i : (int) keys[i] & ((1 << placeBits) - 1);
        keys[i] = ((indices[place] >>> first) << placeBits) | place;
      }
      int some = Math.min(most, bits - first);
      int passes = (some + MOST_DIGIT - 1) / MOST_DIGIT;
      for (int pass = 0; pass < passes; pass++) {
        int digit = (some + passes - 1) / passes; // as equal as can be
        sortKeys(placeBits + pass * digit, (1 << digit) - 1);
      }
    }
  }

  private void sortKeys(int shift, int mask) {
    long[] from = keys;
    long[] to = sorted;
    Arrays.fill(counters, 0, mask + 1, 0);
    for (int i = 0; i < count; i++) {
      counters[(int) (from[i] >>> shift) & mask]++;
    }
    int at = 0;
    for (int value = 0; value <= mask; value++) {
      int equal = counters[value];
      counters[value] = at;
      at += equal;
    }
    for (int i = 0; i < count; i++) {
      to[counters[(int) (from[i] >>> shift) & mask]++] = from[i];
    }
    keys = to;
    sorted = from;
  }

  /** Makes room for the lists of all ranks, which together have as many indices. */
  void begin(int room) {
    others = 0;
    if (lists.length < room + ends.length) {
      lists = new long[room + ends.length];
      merged = new long[room + ends.length];
      taken = new int[room + ends.length];
    }
    lists[0] = END;
    ends[0] = 0;
  }

  /** Adds another rank's list. Returns where it has to be put before {@link #find}. */
  LongBuffer add(int length) {
    int first = others == 0 ? 0 : ends[others - 1] + 1;
    ends[others++] = first + length;
    lists[first + length] = END;
    return LongBuffer.wrap(lists, first, length);
  }

  /** Returns the indices of all lists, in ascending order and each once; makes the table. */
  long[] find() {
    while (others > 1) {
      mergePairs();
    }
    int all = distinct + ends[0];
    merge(own, 0, distinct, 0, ends[0], 0);
    if (table.length <= count + all) {
      table = Arrays.copyOf(table, count + all + 1);
    }
    int rows = once(all);
    table[count + rows] = count;
    return Arrays.copyOf(lists, rows);
  }

  /** Keeps each merged index once, and enters in the table where its places begin. */
  private int once(int all) {
    long[] from = merged;
    long[] to = lists;
    int rows = 0;
    for (int i = 0; i < all; i++) { // of equal ones, this rank's comes last
      long index = from[i];
      to[rows] = index;
      table[count + rows] = starts[taken[i]];
      rows += (int) ((index - from[i + 1]) >>> (Long.SIZE - 1)); // 1 if it is less
    }
    return rows;
  }

  /** Makes one list of each two of the other ranks. */
  private void mergePairs() {
    int first = 0;
    int to = 0;
    for (int i = 0; i < others; i += 2) {
      int middle = ends[i];
      int second = i + 1 < others ? middle + 1 : middle; // otherwise an empty list
      int end = i + 1 < others ? ends[i + 1] : middle;
      merge(lists, first, middle - first, second, end - second, to);
      to += middle - first + end - second;
      ends[i / 2] = to++;
      first = end + 1;
    }
    others = (others + 1) / 2;
    long[] before = lists;
    lists = merged;
    merged = before;
  }

  /**
   * Merges a list with one of {@link #lists}, whose index comes first where both have it. Both
   * halves of the result at the same time: each step needs the one before, and waits for it.
   */
  private void merge(long[] x, int xFirst, int xLength, int yFirst, int yLength, int to) {
    long[] y = lists;
    long[] out = merged;
    int[] before = taken;
    int all = xLength + yLength;
    int half = all - all / 2;
    int low = Math.max(0, half - yLength); // how many of x are in the first half
    int high = Math.min(half, xLength);
    while (low < high) {
      int middle = (low + high) >>> 1;
      if (x[xFirst + middle] < y[yFirst + half - 1 - middle]) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    int i = xFirst;
    int j = xFirst + low;
    int both = xFirst + yFirst - to;
    for (int k = to; k < to + half; k++) {
      long a = x[i];
      long b = y[both + k - i];
      before[k] = i;
      out[k] = Math.min(a, b);
      i += (int) ((a - b) >>> (Long.SIZE - 1)); // 1 if a is less
      int l = k + half;
      a = x[j];
      b = y[both + l - j];
      before[l] = j;
      out[l] = Math.min(a, b);
      j += (int) ((a - b) >>> (Long.SIZE - 1));
    }
    out[to + all] = END;
  }

  /**
   * {@return what {@link #find} made, not a copy, possibly longer: the numbers of this rank's rows,
   * in the order of the union and equal ones in their own; then for each row of the union how many
   * of these come before its own; and at the end how many there are}
   */
  int[] table() {
    return table;
  }
}
