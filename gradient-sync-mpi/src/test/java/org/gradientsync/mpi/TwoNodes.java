package org.gradientsync.mpi;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Assumptions;

/**
 * Two nodes for mpirun, {@code node1} and {@code node2}, on this machine: each with a host name,
 * processes and shared memory of its own, which messages cross as they cross a network. Files but
 * those in /dev/shm are the same on both.
 */
final class TwoNodes {
  private TwoNodes() {}

  /**
   * What tells mpirun of the nodes. Skips the test where none can be made.
   *
   * @param folder for what it needs
   * @param first how many ranks the first node takes; the second takes the others
   */
  static Map<String, String> environment(Path folder, int first)
      throws IOException, InterruptedException {
    Path agent = folder.resolve("node.sh");
    try (InputStream script = TwoNodes.class.getResourceAsStream("node.sh")) {
      Files.write(agent, script.readAllBytes());
    }
    Files.setPosixFilePermissions(agent, PosixFilePermissions.fromString("rwx------"));
    require(agent);
    Path hosts = folder.resolve("hosts");
    Files.write(hosts, List.of("node1 slots=" + first, "node2 slots=64"));
    Map<String, String> environment = new HashMap<>();
    environment.put("OMPI_MCA_plm", "rsh"); // whatever this machine is set to
    environment.put("OMPI_MCA_plm_rsh_agent", agent.toString());
    environment.put("OMPI_MCA_orte_default_hostfile", hosts.toString());
    environment.put("OMPI_MCA_orte_tmpdir_base", folder.toString()); // not that of another job
    // As mpirun -x. Of an Open MPI that was moved after it was installed, MPI_Init hangs where this
    // variable has not come along: PMIx finds its prefix without MPI's, and deadlocks saying so.
    String moved = System.getenv("OPAL_PREFIX") == null ? "" : ";OPAL_PREFIX";
    environment.put("OMPI_MCA_mca_base_env_list", "UCX_ERROR_SIGNALS" + moved);
    environment.put("OMPI_MCA_pml", "ob1");
    environment.put("OMPI_MCA_btl", "self,vader,tcp"); // script/test keeps other jobs off tcp
    environment.put("OMPI_MCA_oob_tcp_if_include", "lo");
    environment.put("OMPI_MCA_btl_tcp_if_include", "lo");
    return environment;
  }

  private static void require(Path agent) throws IOException, InterruptedException {
    Process process =
        new ProcessBuilder(agent.toString(), "probe", "true").redirectErrorStream(true).start();
    String text = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    if (process.waitFor() != 0) {
      String reason = "SKIPPED: no nodes can be made of namespaces here: " + text.strip();
      System.out.println(reason);
      Assumptions.abort(reason);
    }
  }
}
