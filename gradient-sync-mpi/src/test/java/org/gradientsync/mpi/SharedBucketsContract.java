package org.gradientsync.mpi;

import org.gradientsync.test.contract.BucketsContract;
import org.gradientsync.test.contract.ProcessRunner;
import org.gradientsync.test.contract.RankRunner;

/**
 * Runs the bucket contract with shared memory. {@link ContractsIT} runs it in each rank of an
 * mpirun job.
 */
class SharedBucketsContract extends BucketsContract {
  @Override
  protected RankRunner runner() {
    return new ProcessRunner("shared");
  }
}
