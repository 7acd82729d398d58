package org.gradientsync.cuda.internal.peer;

import org.gradientsync.contract.RankRunner;
import org.gradientsync.contract.ReducerContract;
import org.gradientsync.cuda.GpuRunner;

/** The reducer contract for {@code peer} on real GPUs. */
class PeerOnGpu extends ReducerContract {
  @Override
  protected RankRunner runner() {
    return new GpuRunner(PeerReducer.NAME);
  }

  @Override
  protected boolean looksFirst() {
    return false;
  }
}
