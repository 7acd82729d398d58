package org.gradientsync.cuda.internal.peer;

import org.gradientsync.cuda.GpuRunner;
import org.gradientsync.test.contract.AveragesContract;
import org.gradientsync.test.contract.RankRunner;

/** The contract of what is done with averages, on real GPUs. */
class PeerAveragesOnGpu extends AveragesContract {
  @Override
  protected RankRunner runner() {
    return new GpuRunner(PeerReducer.NAME);
  }
}
