package org.gradientsync.cuda.internal.staged;

import org.gradientsync.cuda.GpuRunner;
import org.gradientsync.test.contract.CompressionContract;
import org.gradientsync.test.contract.RankRunner;

/** Runs the compression contract with {@code host-staged} on real GPUs. */
class HostStagedCompressionOnGpu extends CompressionContract {
  @Override
  protected RankRunner runner() {
    return new GpuRunner(HostStagedReducer.NAME);
  }
}
