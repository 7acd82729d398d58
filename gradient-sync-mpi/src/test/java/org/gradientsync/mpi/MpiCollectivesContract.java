package org.gradientsync.mpi;

import org.gradientsync.test.contract.CollectivesContract;
import org.gradientsync.test.contract.ProcessRunner;
import org.gradientsync.test.contract.RankRunner;

/** Collectives, run by {@link ContractsIT} in each rank of an mpirun job. */
class MpiCollectivesContract extends CollectivesContract {
  @Override
  protected RankRunner runner() {
    return new ProcessRunner("mpi", "messages");
  }
}
