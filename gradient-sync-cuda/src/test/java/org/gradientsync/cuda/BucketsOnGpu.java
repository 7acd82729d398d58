package org.gradientsync.cuda;

import org.gradientsync.contract.BucketsContract;
import org.gradientsync.contract.RankRunner;
import org.junit.jupiter.api.Nested;

/** The contract of gradient buckets on real GPUs: averaged on a stream, and by a thread. */
class BucketsOnGpu {
  @Nested
  class Peer extends BucketsContract {
    @Override
    protected RankRunner runner() {
      return new GpuRunner(PeerReducer.NAME);
    }
  }

  @Nested
  class HostStaged extends BucketsContract {
    @Override
    protected RankRunner runner() {
      return new GpuRunner(HostStagedReducer.NAME);
    }
  }
}
