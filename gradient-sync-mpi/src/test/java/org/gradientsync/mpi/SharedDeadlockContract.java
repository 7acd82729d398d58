package org.gradientsync.mpi;

import org.gradientsync.test.contract.DeadlockContract;
import org.gradientsync.test.contract.ProcessRunner;
import org.gradientsync.test.contract.RankRunner;

/**
 * Runs the deadlock contract with shared memory. {@link ContractsIT} runs it in each rank of an
 * mpirun job.
 */
class SharedDeadlockContract extends DeadlockContract {
  @Override
  protected RankRunner runner() {
    return new ProcessRunner("shared");
  }
}
