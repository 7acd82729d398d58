package org.gradientsync.core.diagnosis;

import org.gradientsync.core.ranks.GroupKey;
import org.gradientsync.core.ranks.Liveness;
import org.gradientsync.core.ranks.RankMap;
import org.gradientsync.core.rendezvous.Arrivals;
import org.gradientsync.core.rendezvous.Calls;

/** What the deadlock detector and the reports see of a group. Any thread may read it. */
public record WatchedGroup(
    GroupKey key, RankMap ranks, Liveness liveness, Calls calls, Arrivals arrivals) {

  public int rank() {
    return ranks.rank();
  }

  public int size() {
    return ranks.size();
  }
}
