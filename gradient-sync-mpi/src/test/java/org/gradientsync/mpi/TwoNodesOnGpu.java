package org.gradientsync.mpi;

import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.DynamicNode;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.api.io.TempDir;

/** Runs ranks with GPUs on the nodes of {@link TwoNodesIT}, which share the GPUs. */
class TwoNodesOnGpu {
  private static final int RANKS = 3;

  @TempDir Path folder;

  @TestFactory
  DynamicNode contractHolds() throws IOException, InterruptedException {
    Mpirun.require();
    Map<String, String> nodes = TwoNodes.environment(folder, 1);
    nodes.put("OMPI_MCA_btl", "^openib"); // all but this one, overriding this machine's settings
    nodes.merge("OMPI_MCA_mca_base_env_list", "LD_LIBRARY_PATH", (a, b) -> a + ";" + b); // for CUDA
    return RankJob.run(
        folder, RANKS, Mpirun.SECONDS, nodes, List.of(), List.of(TwoNodesGpuContract.class));
  }
}
