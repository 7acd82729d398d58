package org.gradientsync.mpi;

import org.gradientsync.test.contract.HookContract;
import org.gradientsync.test.contract.ProcessRunner;
import org.gradientsync.test.contract.RankRunner;

/** The contract of hooks between nodes, run by {@link ContractsOnTwoNodesIT}. */
class TwoLevelHookContract extends HookContract {
  @Override
  protected RankRunner runner() {
    return new ProcessRunner("two-level");
  }
}
