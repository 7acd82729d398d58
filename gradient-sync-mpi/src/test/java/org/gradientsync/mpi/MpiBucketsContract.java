package org.gradientsync.mpi;

import org.gradientsync.test.contract.BucketsContract;
import org.gradientsync.test.contract.ProcessRunner;
import org.gradientsync.test.contract.RankRunner;

/**
 * Runs the bucket contract with messages. {@link ContractsIT} runs it in each rank of an mpirun
 * job.
 */
class MpiBucketsContract extends BucketsContract {
  @Override
  protected RankRunner runner() {
    return new ProcessRunner("mpi");
  }
}
