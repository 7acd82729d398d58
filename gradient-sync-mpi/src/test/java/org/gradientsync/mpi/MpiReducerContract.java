package org.gradientsync.mpi;

import org.gradientsync.test.contract.RankRunner;
import org.gradientsync.test.contract.ReducerContract;

/** The reducer contract, run by {@link ContractsIT} in each rank of an mpirun job. */
class MpiReducerContract extends ReducerContract {
  @Override
  protected RankRunner runner() {
    return new MpiRunner("mpi", "messages");
  }
}
