package org.gradientsync.mpi;

import org.gradientsync.contract.CommunicatorContract;
import org.gradientsync.contract.RankRunner;

/** The communicator contract, run by {@link ContractsIT} in each rank of an mpirun job. */
class MpiCommunicatorContract extends CommunicatorContract {
  @Override
  protected RankRunner runner() {
    return new MpiRunner("mpi", "messages");
  }
}
