package org.gradientsync.mpi;

import org.gradientsync.test.contract.ProcessRunner;
import org.gradientsync.test.contract.RankRunner;
import org.gradientsync.test.contract.ReducerContract;

/**
 * Runs the reducer contract on several nodes. {@link ContractsOnTwoNodesIT} runs it in each rank of
 * an mpirun job.
 */
class TwoLevelReducerContract extends ReducerContract {
  @Override
  protected RankRunner runner() {
    return new ProcessRunner("two-level");
  }
}
