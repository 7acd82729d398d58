package org.gradientsync.mpi;

import org.gradientsync.test.contract.CompressionContract;
import org.gradientsync.test.contract.RankRunner;

/**
 * The compression contract, over shared memory, run by {@link ContractsIT} in each rank of an
 * mpirun job.
 */
class SharedCompressionContract extends CompressionContract {
  @Override
  protected RankRunner runner() {
    return new MpiRunner("shared");
  }
}
