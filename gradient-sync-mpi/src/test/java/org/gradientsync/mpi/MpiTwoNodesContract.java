package org.gradientsync.mpi;

import java.util.List;
import org.gradientsync.test.contract.TwoNodesContract;

/** The contract of two nodes, run by {@link ContractsOnTwoNodesIT} in each rank. */
class MpiTwoNodesContract extends TwoNodesContract {
  @Override
  protected List<String> reducers() {
    return List.of("two-level", "mpi");
  }
}
