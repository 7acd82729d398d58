package org.gradientsync.cuda.internal.staged;

import org.gradientsync.cuda.GpuRunner;
import org.gradientsync.test.contract.BucketsContract;
import org.gradientsync.test.contract.RankRunner;

/** Runs the bucket contract on real GPUs, with averages on the communication thread. */
class HostStagedBucketsOnGpu extends BucketsContract {
  @Override
  protected RankRunner runner() {
    return new GpuRunner(HostStagedReducer.NAME);
  }
}
