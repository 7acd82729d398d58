package org.gradientsync.mpi;

import org.gradientsync.test.contract.ProcessRunner;
import org.gradientsync.test.contract.RankRunner;
import org.gradientsync.test.contract.ReducerContract;

/**
 * Runs the reducer contract with shared memory. {@link ContractsIT} runs it in each rank of an
 * mpirun job.
 */
class SharedReducerContract extends ReducerContract {
  @Override
  protected RankRunner runner() {
    return new ProcessRunner("shared");
  }
}
