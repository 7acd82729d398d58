package org.gradientsync.cuda.internal.staged;

import org.gradientsync.contract.RankRunner;
import org.gradientsync.contract.ReducerContract;
import org.gradientsync.cuda.GpuRunner;

/** The reducer contract for {@code host-staged} on real GPUs. */
class HostStagedOnGpu extends ReducerContract {
  @Override
  protected RankRunner runner() {
    return new GpuRunner(HostStagedReducer.NAME);
  }
}
