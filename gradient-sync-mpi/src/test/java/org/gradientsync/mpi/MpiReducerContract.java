package org.gradientsync.mpi;

import org.gradientsync.contract.RankRunner;
import org.gradientsync.contract.ReducerContract;

/** The reducer contract, run by {@link ContractsIT} in each rank of an mpirun job. */
class MpiReducerContract extends ReducerContract {
  @Override
  protected RankRunner runner() {
    return new MpiRunner("mpi", "messages");
  }
}
