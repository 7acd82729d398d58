package org.gradientsync.mpi;

import org.gradientsync.test.contract.DeadlockContract;
import org.gradientsync.test.contract.RankRunner;

/** Ranks that wait for each other, run by {@link ContractsIT} in each rank of an mpirun job. */
class SharedDeadlockContract extends DeadlockContract {
  @Override
  protected RankRunner runner() {
    return new MpiRunner("shared");
  }
}
