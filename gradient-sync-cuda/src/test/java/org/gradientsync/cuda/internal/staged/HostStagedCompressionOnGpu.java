package org.gradientsync.cuda.internal.staged;

import org.gradientsync.contract.CompressionContract;
import org.gradientsync.contract.RankRunner;
import org.gradientsync.cuda.GpuRunner;

/** The compression contract for {@code host-staged} on real GPUs. */
class HostStagedCompressionOnGpu extends CompressionContract {
  @Override
  protected RankRunner runner() {
    return new GpuRunner(HostStagedReducer.NAME);
  }
}
