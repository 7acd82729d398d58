package org.gradientsync.cuda.internal.peer;

import java.time.Duration;
import org.gradientsync.cuda.GpuRunner;
import org.gradientsync.test.contract.BucketsContract;
import org.gradientsync.test.contract.RankRunner;

/** Runs the bucket contract on real GPUs, with averages on a stream. */
class PeerBucketsOnGpu extends BucketsContract {
  @Override
  protected RankRunner runner() {
    return new GpuRunner(PeerReducer.NAME);
  }

  /** On a shared GPU, freeing memory waits for the kernel of a lost rank, until that times out. */
  @Override
  protected Duration timeout() {
    return GpuRunner.areShared() ? Duration.ofSeconds(5) : super.timeout();
  }
}
