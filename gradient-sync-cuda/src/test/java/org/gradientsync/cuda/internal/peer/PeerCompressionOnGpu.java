package org.gradientsync.cuda.internal.peer;

import org.gradientsync.cuda.GpuRunner;
import org.gradientsync.test.contract.CompressionContract;
import org.gradientsync.test.contract.RankRunner;

/** Runs the compression contract with {@code peer}, whose kernels convert. */
class PeerCompressionOnGpu extends CompressionContract {
  @Override
  protected RankRunner runner() {
    return new GpuRunner(PeerReducer.NAME);
  }
}
