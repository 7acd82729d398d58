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
 * Nodes for mpirun on this machine, {@code node1} and so on with two ranks each, whose links have a
 * limited bandwidth and can be cut.
 *
 * @param folder for temporary files
 * @param nodes how many
 * @param rate of each link, as tc writes it
 * @param slow the node that has a tenth of it, or 0
 */
record LinkedNodes(Path folder, int nodes, String rate, int slow) {
  /** Runs a class on all slots of the nodes. Skips the test if there can be no such nodes. */
  Mpirun.Result run(long seconds, Class<?> main, String... arguments)
      throws IOException, InterruptedException {
    Path script = folder.resolve("links.sh");
    try (InputStream text = LinkedNodes.class.getResourceAsStream("links.sh")) {
      Files.write(script, text.readAllBytes());
    }
    require(script);
    List<String> below =
        List.of(
            "sh",
            script.toString(),
            folder.toString(),
            Integer.toString(nodes),
            rate,
            Integer.toString(slow));
    return Mpirun.runBelow(below, 2 * nodes, seconds, environment(), main, arguments);
  }

  private Map<String, String> environment() {
    Map<String, String> environment = new HashMap<>();
    environment.put("OMPI_MCA_plm", "rsh"); // overrides this machine's settings
    environment.put("OMPI_MCA_plm_rsh_agent", folder.resolve("agent").toString());
    environment.put("OMPI_MCA_orte_default_hostfile", folder.resolve("hosts").toString());
    environment.put("OMPI_MCA_orte_tmpdir_base", folder.toString()); // separate from other jobs
    String moved = System.getenv("OPAL_PREFIX") == null ? "" : ";OPAL_PREFIX"; // see TwoNodes
    environment.put("OMPI_MCA_mca_base_env_list", "UCX_ERROR_SIGNALS" + moved);
    environment.put("OMPI_MCA_pml", "ob1");
    environment.put("OMPI_MCA_btl", "self,vader,tcp");
    environment.put("OMPI_MCA_oob_tcp_if_include", "10.77.0.0/24");
    environment.put("OMPI_MCA_btl_tcp_if_include", "10.77.0.0/24");
    return environment;
  }

  private static void require(Path script) throws IOException, InterruptedException {
    Process process =
        new ProcessBuilder("sh", script.toString(), "probe").redirectErrorStream(true).start();
    String text = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    if (process.waitFor() != 0) {
      String reason = "SKIPPED: no shaped links can be made here: " + text.strip();
      System.out.println(reason);
      Assumptions.abort(reason);
    }
  }
}
