package org.gradientsync.cuda.internal.staged;

import org.gradientsync.cuda.GpuRunner;
import org.gradientsync.test.contract.RankRunner;
import org.gradientsync.test.contract.ReducerContract;

/** Runs the reducer contract with {@code host-staged} on real GPUs. */
class HostStagedOnGpu extends ReducerContract {
  @Override
  protected RankRunner runner() {
    return new GpuRunner(HostStagedReducer.NAME);
  }
}
