package org.gradientsync.tcp;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.function.IntUnaryOperator;
import org.gradientsync.test.contract.RankJvm;

/** Runs jobs on nodes that are made of this machine by namespaces. */
final class TwoNodes {
  /** Runs a command on a node. */
  static final Path SCRIPT =
      Path.of("../gradient-sync-mpi/src/test/resources/org/gradientsync/mpi/node.sh")
          .toAbsolutePath();

  private TwoNodes() {}

  /**
   * Runs a class on two nodes.
   *
   * @param first the number of ranks on the first node
   * @param words in which HOST is the node's name
   * @return how each node has ended
   */
  static List<Ranks.Result> run(
      int first, int size, List<String> below, List<String> options, String... words)
      throws IOException, InterruptedException {
    return run(2, rank -> rank < first ? 0 : 1, size, below, options, words);
  }

  /** As above, on any number of nodes. */
  static List<Ranks.Result> run(
      int nodes,
      IntUnaryOperator nodeOf,
      int size,
      List<String> below,
      List<String> options,
      String... words)
      throws IOException, InterruptedException {
    Ranks ranks = Ranks.prepare();
    StringBuilder[] commands = new StringBuilder[nodes];
    Arrays.setAll(commands, node -> new StringBuilder());
    for (int rank = 0; rank < size; rank++) {
      String node = "node" + nodeOf.applyAsInt(rank);
      StringBuilder command = commands[nodeOf.applyAsInt(rank)].append("env");
      ranks
          .variables(rank, size)
          .forEach((name, value) -> command.append(" '" + name + "=" + value + "'"));
      List<String> all = new ArrayList<>(below);
      all.addAll(RankJvm.command(options, words));
      all.forEach(word -> command.append(" '" + word.replace("HOST", node) + "'"));
      command.append(" & ");
    }
    for (int node = 0; node < nodes; node++) {
      String command = commands[node] + "wait";
      ranks.start(Map.of(), List.of("sh", SCRIPT.toString(), "node" + node, command));
    }
    return ranks.await();
  }
}
