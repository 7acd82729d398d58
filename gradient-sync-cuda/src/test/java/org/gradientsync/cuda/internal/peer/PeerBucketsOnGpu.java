package org.gradientsync.cuda.internal.peer;

import java.time.Duration;
import org.gradientsync.cuda.GpuRunner;
import org.gradientsync.test.contract.BucketsContract;
import org.gradientsync.test.contract.RankRunner;

/** The contract of gradient buckets on real GPUs, averaged on a stream. */
class PeerBucketsOnGpu extends BucketsContract {
  @Override
  protected RankRunner runner() {
    return new GpuRunner(PeerReducer.NAME);
  }

  /**
   * Freeing memory of a GPU that ranks share waits for a lost rank's kernel, until its time-out.
   */
  @Override
  protected Duration timeout() {
    return GpuRunner.areShared() ? Duration.ofSeconds(5) : super.timeout();
  }
}
