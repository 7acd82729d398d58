package org.gradientsync.mpi;

import org.gradientsync.test.contract.ProcessRunner;
import org.gradientsync.test.contract.RankRunner;
import org.gradientsync.test.contract.ReducerContract;

/**
 * Runs the reducer contract with messages. {@link ContractsIT} runs it in each rank of an mpirun
 * job.
 */
class MpiReducerContract extends ReducerContract {
  @Override
  protected RankRunner runner() {
    return new ProcessRunner("mpi", "messages");
  }
}
