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
  @TempDir Path folder;

  @TestFactory
  DynamicNode contractHolds() throws IOException, InterruptedException {
    return run(1, 3, TwoNodesGpuContract.class);
  }

  @TestFactory
  DynamicNode twoLevelsHold() throws IOException, InterruptedException {
    return run(2, 4, TwoLevelGpuContract.class);
  }

  private DynamicNode run(int first, int ranks, Class<?> contract)
      throws IOException, InterruptedException {
    Mpirun.require();
    Map<String, String> nodes = TwoNodes.environment(folder, first);
    nodes.put("OMPI_MCA_btl", "^openib"); // all but this one, overriding this machine's settings
    nodes.put("NCCL_SOCKET_IFNAME", "lo");
    nodes.put("NCCL_IB_DISABLE", "1");
    nodes.merge(
        "OMPI_MCA_mca_base_env_list",
        "LD_LIBRARY_PATH;NCCL_SOCKET_IFNAME;NCCL_IB_DISABLE", // the first for CUDA
        (a, b) -> a + ";" + b);
    return RankJob.run(folder, ranks, Mpirun.SECONDS, nodes, List.of(), List.of(contract));
  }
}
