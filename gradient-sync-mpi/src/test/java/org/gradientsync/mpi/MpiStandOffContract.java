package org.gradientsync.mpi;

import org.gradientsync.contract.RankRunner;
import org.gradientsync.contract.StandOffContract;

/** Ranks that wait for each other, run by {@link ContractsIT} in each rank of an mpirun job. */
class MpiStandOffContract extends StandOffContract {
  @Override
  protected RankRunner runner() {
    return new MpiRunner("mpi", "messages");
  }
}
