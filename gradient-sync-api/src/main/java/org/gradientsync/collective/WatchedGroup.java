package org.gradientsync.collective;

/**
 * What the deadlock detector and the reports see of a group. Read by any thread.
 *
 * @param key what all its ranks call it
 * @param ranks who takes part
 * @param liveness who is still there
 * @param calls what this rank has called
 * @param arrivals how far the ranks have come
 */
record WatchedGroup(
    GroupKey key, RankMap ranks, Liveness liveness, Calls calls, Arrivals arrivals) {

  int rank() {
    return ranks.rank();
  }

  int size() {
    return ranks.size();
  }
}
