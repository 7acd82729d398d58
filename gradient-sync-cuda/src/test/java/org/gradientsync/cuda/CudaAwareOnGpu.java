package org.gradientsync.cuda;

import org.gradientsync.test.contract.RankRunner;
import org.gradientsync.test.contract.ReducerContract;

/** The reducer contract for {@code cuda-aware} on real GPUs, under mpirun alone. */
class CudaAwareOnGpu extends ReducerContract {
  @Override
  protected RankRunner runner() {
    return new GpuRunner("cuda-aware");
  }
}
