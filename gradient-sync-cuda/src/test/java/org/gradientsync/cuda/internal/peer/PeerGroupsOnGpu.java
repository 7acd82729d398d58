package org.gradientsync.cuda.internal.peer;

import org.gradientsync.cuda.GpuRunner;
import org.gradientsync.test.contract.GroupsContract;
import org.gradientsync.test.contract.RankRunner;

/** Runs the contract of groups with {@code peer} on real GPUs. */
class PeerGroupsOnGpu extends GroupsContract {
  @Override
  protected RankRunner runner() {
    return new GpuRunner(PeerReducer.NAME);
  }
}
