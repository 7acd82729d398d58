package org.gradientsync.tools.doctor;

import java.util.ArrayList;
import java.util.List;

/** Formats numbers of ranks for users. */
final class Ranks {
  private Ranks() {}

  /** Formats ranks, for example {@code rank 3}, or {@code ranks 0-2, 5}. */
  static String text(List<Integer> ranks) {
    List<String> parts = new ArrayList<>();
    int i = 0;
    while (i < ranks.size()) {
      int last = i;
      while (last + 1 < ranks.size() && ranks.get(last + 1) == ranks.get(last) + 1) {
        last++;
      }
      String first = Integer.toString(ranks.get(i));
      parts.add(last == i ? first : first + "-" + ranks.get(last));
      i = last + 1;
    }
    return (ranks.size() == 1 ? "rank " : "ranks ") + String.join(", ", parts);
  }
}
