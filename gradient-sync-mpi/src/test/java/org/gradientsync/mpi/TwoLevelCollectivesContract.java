package org.gradientsync.mpi;

import org.gradientsync.test.contract.CollectivesContract;
import org.gradientsync.test.contract.ProcessRunner;
import org.gradientsync.test.contract.RankRunner;

/** Collectives between nodes with equally many ranks, run by {@link ContractsOnTwoNodesIT}. */
class TwoLevelCollectivesContract extends CollectivesContract {
  @Override
  protected RankRunner runner() {
    return new ProcessRunner("two-level");
  }
}
