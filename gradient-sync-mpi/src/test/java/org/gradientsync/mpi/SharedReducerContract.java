package org.gradientsync.mpi;

import org.gradientsync.test.contract.RankRunner;
import org.gradientsync.test.contract.ReducerContract;

/**
 * The reducer contract, over shared memory, run by {@link ContractsIT} in each rank of an mpirun
 * job.
 */
class SharedReducerContract extends ReducerContract {
  @Override
  protected RankRunner runner() {
    return new MpiRunner("shared");
  }
}
