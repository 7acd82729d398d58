package org.gradientsync.core.ranks;

import java.util.List;
import java.util.StringJoiner;

/** Names many ranks in a text that stays short: {@code ranks 0-76, 78-255}. */
public final class RankRanges {
  private static final int MOST = 8;

  private RankRanges() {}

  /**
   * @param ranks one or more, in ascending order
   */
  public static String of(List<Integer> ranks) {
    StringJoiner ranges = new StringJoiner(", ");
    int shown = 0;
    int from = 0;
    while (from < ranks.size() && shown < MOST) {
      int to = from;
      while (to + 1 < ranks.size() && ranks.get(to + 1) == ranks.get(to) + 1) {
        to++;
      }
      ranges.add(to == from ? ranks.get(from).toString() : ranks.get(from) + "-" + ranks.get(to));
      from = to + 1;
      shown++;
    }
    String more = from < ranks.size() ? " and " + (ranks.size() - from) + " more" : "";
    return (ranks.size() == 1 ? "rank " : "ranks ") + ranges + more;
  }
}
