package org.gradientsync.tcp;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Tests a job on two nodes that are made of this machine by namespaces. */
@Tag("nodes")
class TwoNodesIT {
  private static final Path NODE =
      Path.of("../gradient-sync-mpi/src/test/resources/org/gradientsync/mpi/node.sh")
          .toAbsolutePath();

  /** Nobody gives local ranks: who shares memory is found out, and the log says what that means. */
  @Test
  void ranksOfTwoNodesAverage() throws Exception {
    Ranks ranks = Ranks.prepare();
    String[] commands = new String[2];
    for (int node = 0; node < 2; node++) {
      StringBuilder command = new StringBuilder();
      for (int rank : new int[] {2 * node, 2 * node + 1}) {
        Map<String, String> variables = ranks.variables(rank, 4);
        command.append("env");
        variables.forEach((name, value) -> command.append(" '" + name + "=" + value + "'"));
        List<String> java = Ranks.command(List.of(), Programs.class, "average-much");
        java.forEach(word -> command.append(" '" + word + "'"));
        command.append(" & ");
      }
      commands[node] = command + "wait";
    }
    for (int node = 0; node < 2; node++) {
      ranks.start(Map.of(), List.of("sh", NODE.toString(), "node" + node, commands[node]));
    }
    List<Ranks.Result> nodes = ranks.await();
    for (int rank = 0; rank < 4; rank++) {
      Ranks.Result node = nodes.get(rank / 2);
      assertEquals(0, node.exitCode(), node.output());
      if (rank == 0) {
        node.expect(
            "4 ranks (tcp) on 2 nodes, host memory, reducer two-level, sockets between nodes: ");
      }
      node.expect("rank " + rank + " of 4, local " + rank % 2 + " of 2: two-level, average 1.5");
    }
  }
}
