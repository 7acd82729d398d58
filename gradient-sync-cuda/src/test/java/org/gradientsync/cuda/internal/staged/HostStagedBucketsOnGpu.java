package org.gradientsync.cuda.internal.staged;

import org.gradientsync.contract.BucketsContract;
import org.gradientsync.contract.RankRunner;
import org.gradientsync.cuda.GpuRunner;

/** The contract of gradient buckets on real GPUs, averaged by a thread. */
class HostStagedBucketsOnGpu extends BucketsContract {
  @Override
  protected RankRunner runner() {
    return new GpuRunner(HostStagedReducer.NAME);
  }
}
