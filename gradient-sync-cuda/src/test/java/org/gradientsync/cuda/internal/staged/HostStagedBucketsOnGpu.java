package org.gradientsync.cuda.internal.staged;

import org.gradientsync.cuda.GpuRunner;
import org.gradientsync.test.contract.BucketsContract;
import org.gradientsync.test.contract.RankRunner;

/** The contract of gradient buckets on real GPUs, averaged by a thread. */
class HostStagedBucketsOnGpu extends BucketsContract {
  @Override
  protected RankRunner runner() {
    return new GpuRunner(HostStagedReducer.NAME);
  }
}
