package org.gradientsync.mpi;

import org.gradientsync.test.contract.BucketsContract;
import org.gradientsync.test.contract.RankRunner;

/** The contract of gradient buckets, run by {@link ContractsIT} in each rank of an mpirun job. */
class MpiBucketsContract extends BucketsContract {
  @Override
  protected RankRunner runner() {
    return new MpiRunner("mpi");
  }
}
