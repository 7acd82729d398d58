package org.gradientsync.mpi;

import org.gradientsync.test.contract.CommunicatorContract;
import org.gradientsync.test.contract.RankRunner;

/**
 * The communicator contract, over shared memory, run by {@link ContractsIT} in each rank of an
 * mpirun job.
 */
class SharedCommunicatorContract extends CommunicatorContract {
  @Override
  protected RankRunner runner() {
    return new MpiRunner("shared");
  }
}
