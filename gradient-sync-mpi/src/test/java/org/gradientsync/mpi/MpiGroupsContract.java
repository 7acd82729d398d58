package org.gradientsync.mpi;

import org.gradientsync.test.contract.GroupsContract;
import org.gradientsync.test.contract.ProcessRunner;
import org.gradientsync.test.contract.RankRunner;

/** Parts of a sync, run by {@link ContractsIT} in each rank of an mpirun job. */
class MpiGroupsContract extends GroupsContract {
  @Override
  protected RankRunner runner() {
    return new ProcessRunner("mpi", "messages");
  }
}
