package org.gradientsync.cuda.internal.peer;

import org.gradientsync.cuda.GpuRunner;
import org.gradientsync.test.contract.RankRunner;
import org.gradientsync.test.contract.ShardedContract;

/** The contract of sharded buckets, on real GPUs. */
class PeerShardedOnGpu extends ShardedContract {
  @Override
  protected RankRunner runner() {
    return new GpuRunner(PeerReducer.NAME);
  }
}
