package org.gradientsync.mpi;

import org.gradientsync.test.contract.HookContract;
import org.gradientsync.test.contract.ProcessRunner;
import org.gradientsync.test.contract.RankRunner;

/**
 * Runs the contract of hooks with messages. {@link ContractsIT} runs it in each rank of an mpirun
 * job.
 */
class MpiHookContract extends HookContract {
  @Override
  protected RankRunner runner() {
    return new ProcessRunner("mpi", "messages");
  }
}
