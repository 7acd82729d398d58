package org.gradientsync.cuda.internal.staged;

import org.gradientsync.cuda.GpuRunner;
import org.gradientsync.test.contract.CollectivesContract;
import org.gradientsync.test.contract.RankRunner;

/** Runs the contract of collectives with {@code host-staged} on real GPUs. */
class HostStagedCollectivesOnGpu extends CollectivesContract {
  @Override
  protected RankRunner runner() {
    return new GpuRunner(HostStagedReducer.NAME);
  }
}
