package org.gradientsync.cuda.internal.peer;

import org.gradientsync.contract.CompressionContract;
import org.gradientsync.contract.RankRunner;
import org.gradientsync.cuda.GpuRunner;

/** The compression contract for {@code peer}, whose kernels convert. */
class PeerCompressionOnGpu extends CompressionContract {
  @Override
  protected RankRunner runner() {
    return new GpuRunner(PeerReducer.NAME);
  }
}
