package org.gradientsync.cuda;

import org.gradientsync.test.contract.RankRunner;
import org.gradientsync.test.contract.ReducerContract;

/** Runs the reducer contract with {@code cuda-aware} on real GPUs, only under mpirun. */
class CudaAwareOnGpu extends ReducerContract {
  @Override
  protected RankRunner runner() {
    return new GpuRunner("cuda-aware");
  }
}
