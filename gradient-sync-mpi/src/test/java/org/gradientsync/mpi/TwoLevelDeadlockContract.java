package org.gradientsync.mpi;

import org.gradientsync.test.contract.DeadlockContract;
import org.gradientsync.test.contract.ProcessRunner;
import org.gradientsync.test.contract.RankRunner;

/**
 * Runs the deadlock contract on several nodes. {@link ContractsOnTwoNodesIT} runs it in each rank
 * of an mpirun job.
 */
class TwoLevelDeadlockContract extends DeadlockContract {
  @Override
  protected RankRunner runner() {
    return new ProcessRunner("two-level");
  }
}
