package org.gradientsync.cuda.internal.staged;

import org.gradientsync.cuda.GpuRunner;
import org.gradientsync.test.contract.GroupedCallsContract;
import org.gradientsync.test.contract.RankRunner;

/** The contract of calls in groups, on real GPUs. */
class HostStagedGroupedCallsOnGpu extends GroupedCallsContract {
  @Override
  protected RankRunner runner() {
    return new GpuRunner(HostStagedReducer.NAME);
  }
}
