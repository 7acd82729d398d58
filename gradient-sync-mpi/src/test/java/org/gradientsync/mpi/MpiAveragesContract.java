package org.gradientsync.mpi;

import org.gradientsync.test.contract.AveragesContract;
import org.gradientsync.test.contract.ProcessRunner;
import org.gradientsync.test.contract.RankRunner;

/**
 * Runs the contract of averages with messages. {@link ContractsIT} runs it in each rank of an
 * mpirun job.
 */
class MpiAveragesContract extends AveragesContract {
  @Override
  protected RankRunner runner() {
    return new ProcessRunner("mpi", "messages");
  }
}
