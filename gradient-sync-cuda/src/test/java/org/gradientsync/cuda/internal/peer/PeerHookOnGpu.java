package org.gradientsync.cuda.internal.peer;

import org.gradientsync.cuda.GpuRunner;
import org.gradientsync.test.contract.HookContract;
import org.gradientsync.test.contract.RankRunner;

/** The contract of hooks, on real GPUs. */
class PeerHookOnGpu extends HookContract {
  @Override
  protected RankRunner runner() {
    return new GpuRunner(PeerReducer.NAME);
  }
}
