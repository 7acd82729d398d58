package org.gradientsync.mpi;

import org.gradientsync.test.contract.GroupedCallsContract;
import org.gradientsync.test.contract.ProcessRunner;
import org.gradientsync.test.contract.RankRunner;

/** Calls in groups, run by {@link ContractsIT} in each rank of an mpirun job. */
class MpiGroupedCallsContract extends GroupedCallsContract {
  @Override
  protected RankRunner runner() {
    return new ProcessRunner("mpi", "messages");
  }
}
