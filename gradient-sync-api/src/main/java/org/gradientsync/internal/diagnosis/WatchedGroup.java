package org.gradientsync.internal.diagnosis;

import org.gradientsync.internal.matching.Arrivals;
import org.gradientsync.internal.matching.Calls;
import org.gradientsync.internal.ranks.GroupKey;
import org.gradientsync.internal.ranks.Liveness;
import org.gradientsync.internal.ranks.RankMap;

/**
 * What the deadlock detector and the reports see of a group. Read by any thread.
 *
 * @param key what all its ranks call it
 * @param ranks who takes part
 * @param liveness who is still there
 * @param calls what this rank has called
 * @param arrivals how far the ranks have come
 */
public record WatchedGroup(
    GroupKey key, RankMap ranks, Liveness liveness, Calls calls, Arrivals arrivals) {

  public int rank() {
    return ranks.rank();
  }

  public int size() {
    return ranks.size();
  }
}
