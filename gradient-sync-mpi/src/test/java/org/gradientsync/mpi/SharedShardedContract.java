package org.gradientsync.mpi;

import org.gradientsync.test.contract.ProcessRunner;
import org.gradientsync.test.contract.RankRunner;
import org.gradientsync.test.contract.ShardedContract;

/**
 * Runs the contract of sharded buckets with shared memory. {@link ContractsIT} runs it in each rank
 * of an mpirun job.
 */
class SharedShardedContract extends ShardedContract {
  @Override
  protected RankRunner runner() {
    return new ProcessRunner("shared");
  }
}
