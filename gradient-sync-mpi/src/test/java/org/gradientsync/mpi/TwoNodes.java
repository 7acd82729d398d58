package org.gradientsync.mpi;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Assumptions;

/**
 * Two nodes for mpirun on this machine, {@code node1} and {@code node2}. Each has its own host
 * name, processes and shared memory. Messages between them use TCP, as on a network. They share all
 * files but those in /dev/shm.
 */
final class TwoNodes {
  private TwoNodes() {}

  /**
   * Returns the environment for mpirun. Skips the test if the system cannot create the nodes.
   *
   * @param folder for temporary files
   * @param first the number of ranks on the first node; the second node has the others
   */
  static Map<String, String> environment(Path folder, int first)
      throws IOException, InterruptedException {
    Path agent = folder.resolve("node.sh");
    try (InputStream script = TwoNodes.class.getResourceAsStream("node.sh")) {
      Files.write(agent, script.readAllBytes());
    }
    require(agent);
    Path hosts = folder.resolve("hosts");
    Files.write(hosts, List.of("node1 slots=" + first, "node2 slots=64"));
    Map<String, String> environment = new HashMap<>();
    environment.put("OMPI_MCA_plm", "rsh"); // overrides this machine's settings
    // Not run as a program: a process that starts at this moment may still have it open to write.
    environment.put("OMPI_MCA_plm_rsh_agent", "sh " + agent);
    environment.put("OMPI_MCA_orte_default_hostfile", hosts.toString());
    environment.put("OMPI_MCA_orte_tmpdir_base", folder.toString()); // separate from other jobs
    // Like mpirun -x. If Open MPI was moved after its installation, MPI_Init hangs without this
    // variable: PMIx finds its own prefix without MPI's, and deadlocks while reporting that.
    String moved = System.getenv("OPAL_PREFIX") == null ? "" : ";OPAL_PREFIX";
    environment.put("OMPI_MCA_mca_base_env_list", "UCX_ERROR_SIGNALS" + moved);
    environment.put("OMPI_MCA_pml", "ob1");
    environment.put("OMPI_MCA_btl", "self,vader,tcp"); // script/test keeps other jobs off TCP
    environment.put("OMPI_MCA_oob_tcp_if_include", "lo");
    environment.put("OMPI_MCA_btl_tcp_if_include", "lo");
    return environment;
  }

  /** Lets the nodes see one memory, as containers that share it. MPI goes by their names. */
  static void shareMemory(Path folder) throws IOException {
    Path agent = folder.resolve("node.sh");
    String script = Files.readString(agent);
    Files.writeString(agent, script.replace("mount -t tmpfs -o mode=1777 none /dev/shm", "true"));
  }

  private static void require(Path agent) throws IOException, InterruptedException {
    Process process =
        new ProcessBuilder("sh", agent.toString(), "probe", "true")
            .redirectErrorStream(true)
            .start();
    String text = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    if (process.waitFor() != 0) {
      String reason = "SKIPPED: no nodes can be made of namespaces here: " + text.strip();
      System.out.println(reason);
      Assumptions.abort(reason);
    }
  }
}
