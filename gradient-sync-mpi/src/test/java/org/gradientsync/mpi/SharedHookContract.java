package org.gradientsync.mpi;

import org.gradientsync.test.contract.HookContract;
import org.gradientsync.test.contract.ProcessRunner;
import org.gradientsync.test.contract.RankRunner;

/**
 * Runs the contract of hooks with shared memory. {@link ContractsIT} runs it in each rank of an
 * mpirun job.
 */
class SharedHookContract extends HookContract {
  @Override
  protected RankRunner runner() {
    return new ProcessRunner("shared");
  }
}
