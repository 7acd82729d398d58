package org.gradientsync.mpi;

import org.gradientsync.test.contract.BucketsContract;
import org.gradientsync.test.contract.RankRunner;

/**
 * The contract of gradient buckets, over shared memory, run by {@link ContractsIT} in each rank of
 * an mpirun job.
 */
class SharedBucketsContract extends BucketsContract {
  @Override
  protected RankRunner runner() {
    return new MpiRunner("shared");
  }
}
