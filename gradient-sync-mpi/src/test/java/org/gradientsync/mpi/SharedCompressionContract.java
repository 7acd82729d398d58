package org.gradientsync.mpi;

import org.gradientsync.test.contract.CompressionContract;
import org.gradientsync.test.contract.ProcessRunner;
import org.gradientsync.test.contract.RankRunner;

/**
 * Runs the compression contract with shared memory. {@link ContractsIT} runs it in each rank of an
 * mpirun job.
 */
class SharedCompressionContract extends CompressionContract {
  @Override
  protected RankRunner runner() {
    return new ProcessRunner("shared");
  }
}
