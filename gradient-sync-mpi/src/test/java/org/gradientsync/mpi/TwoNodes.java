package org.gradientsync.mpi;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.Map;

/**
 * Two nodes for mpirun, {@code node1} and {@code node2}, on this machine: each with a host name,
 * processes and shared memory of its own, which messages cross as they cross a network. Files but
 * those in /dev/shm are the same on both.
 */
final class TwoNodes {
  private TwoNodes() {}

  /**
   * What tells mpirun of the nodes.
   *
   * @param folder for what it needs
   * @param first how many ranks the first node takes; the second takes the others
   */
  static Map<String, String> environment(Path folder, int first) throws IOException {
    Path agent = folder.resolve("node.sh");
    try (InputStream script = TwoNodes.class.getResourceAsStream("node.sh")) {
      Files.write(agent, script.readAllBytes());
    }
    Files.setPosixFilePermissions(agent, PosixFilePermissions.fromString("rwx------"));
    Path hosts = folder.resolve("hosts");
    Files.write(hosts, List.of("node1 slots=" + first, "node2 slots=64"));
    return Map.of(
        "OMPI_MCA_plm_rsh_agent",
        agent.toString(),
        "OMPI_MCA_orte_default_hostfile",
        hosts.toString(),
        "OMPI_MCA_oob_tcp_if_include",
        "lo",
        "OMPI_MCA_btl_tcp_if_include",
        "lo");
  }

  /** Fails where this machine does not let its users make such nodes. */
  static void require() throws IOException, InterruptedException {
    Process process =
        new ProcessBuilder("unshare", "--uts", "--ipc", "--mount", "--pid", "--fork", "true")
            .redirectErrorStream(true)
            .start();
    String text = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertTrue(
        process.waitFor() == 0,
        () -> "no nodes can be made here; leave them out by -DexcludedGroups=nodes: " + text);
  }
}
