package org.gradientsync.cuda.internal.staged;

import org.gradientsync.cuda.GpuRunner;
import org.gradientsync.test.contract.RankRunner;
import org.gradientsync.test.contract.ShardedContract;

/** The contract of sharded buckets, on real GPUs. */
class HostStagedShardedOnGpu extends ShardedContract {
  @Override
  protected RankRunner runner() {
    return new GpuRunner(HostStagedReducer.NAME);
  }
}
