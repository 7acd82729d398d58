package org.gradientsync.cuda.internal.staged;

import org.gradientsync.cuda.GpuRunner;
import org.gradientsync.test.contract.GroupsContract;
import org.gradientsync.test.contract.RankRunner;

/** Runs the contract of groups with {@code host-staged} on real GPUs. */
class HostStagedGroupsOnGpu extends GroupsContract {
  @Override
  protected RankRunner runner() {
    return new GpuRunner(HostStagedReducer.NAME);
  }
}
