package org.gradientsync.cuda.internal.peer;

import org.gradientsync.cuda.GpuRunner;
import org.gradientsync.test.contract.RankRunner;
import org.gradientsync.test.contract.ReducerContract;

/** Runs the reducer contract with {@code peer} on real GPUs. */
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
