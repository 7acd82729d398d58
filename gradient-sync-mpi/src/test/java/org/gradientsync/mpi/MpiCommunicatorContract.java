package org.gradientsync.mpi;

import org.gradientsync.test.contract.CommunicatorContract;
import org.gradientsync.test.contract.ProcessRunner;
import org.gradientsync.test.contract.RankRunner;

/**
 * Runs the communicator contract with messages. {@link ContractsIT} runs it in each rank of an
 * mpirun job.
 */
class MpiCommunicatorContract extends CommunicatorContract {
  @Override
  protected RankRunner runner() {
    return new ProcessRunner("mpi", "messages");
  }
}
