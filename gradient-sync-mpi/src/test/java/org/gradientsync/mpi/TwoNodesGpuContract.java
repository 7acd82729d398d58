package org.gradientsync.mpi;

import java.util.List;
import org.gradientsync.GradientSync;
import org.gradientsync.test.contract.TwoNodesContract;

/** Runs the contract of two nodes on ranks with GPUs. */
class TwoNodesGpuContract extends TwoNodesContract {
  private static final String STAGED = "host-staged";

  @Override
  protected List<String> reducers() {
    try (GradientSync sync = GradientSync.create()) { // MPI may be CUDA-aware or not
      String chosen = sync.reducer();
      return chosen.equals(STAGED) ? List.of(STAGED) : List.of("cuda-aware", STAGED);
    }
  }

  @Override
  protected String needsOneNode() {
    return "peer";
  }
}
