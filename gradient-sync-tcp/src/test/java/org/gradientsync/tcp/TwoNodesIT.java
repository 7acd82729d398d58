package org.gradientsync.tcp;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.gradientsync.RankLostException;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Tests jobs on two nodes that are made of this machine by namespaces. */
@Tag("nodes")
class TwoNodesIT {
  private static final String LOST = "rank 1 \\(host=node1, process=\\d+\\)";

  @TempDir Path folder;

  private static List<Ranks.Result> lose(String manner, String... options) throws Exception {
    return TwoNodes.run(1, 3, List.of(), List.of(options), Programs.class.getName(), manner);
  }

  /**
   * The command of a rank with a network of its own: the interface lan, with the address 10.9.9.1.
   *
   * @param setUp a shell command that changes it before
   */
  private static List<String> inNetwork(String setUp, List<String> options, String manner) {
    String network =
        "ip link set lo up && ip link add lan type veth peer name far && ip link set far up"
            + " && ip addr add 10.9.9.1/24 dev lan && ip link set lan up && "
            + setUp
            + " && exec \"$@\"";
    List<String> command =
        new ArrayList<>(List.of("unshare", "--map-root-user", "--net", "sh", "-c", network, "sh"));
    command.addAll(Ranks.command(options, Programs.class, manner));
    return command;
  }

  private static void requireMatch(Ranks.Result node, String expression) {
    assertTrue(
        Pattern.compile(expression).matcher(node.output()).find(),
        () -> "no '" + expression + "' in the output:\n" + node.output());
  }

  /** Nobody gives local ranks: who shares memory is found out, and the log says what that means. */
  @Test
  void ranksOfTwoNodesAverage() throws Exception {
    List<Ranks.Result> nodes =
        TwoNodes.run(2, 4, List.of(), List.of(), Programs.class.getName(), "average-much");
    nodes
        .get(0)
        .expect(
            "4 ranks (tcp) on 2 nodes, host memory, reducer two-level, sockets between nodes: ");
    for (int rank = 0; rank < 4; rank++) {
      Ranks.Result node = nodes.get(rank / 2);
      assertEquals(0, node.exitCode(), node.output());
      node.expect("rank " + rank + " of 4, local " + rank % 2 + " of 2: two-level, average 1.5");
    }
  }

  /** The master's packets go to a machine that there is not. */
  @Test
  void aMasterBehindAFirewallThatDropsIsNamed() throws Exception {
    Ranks ranks = Ranks.prepare();
    Map<String, String> variables = ranks.variables(1, 2);
    variables.put("MASTER_ADDR", "10.9.9.2");
    String dropping = "ip neigh replace 10.9.9.2 lladdr 02:00:00:00:00:99 dev lan nud permanent";
    List<String> options = List.of("-Dgradientsync.timeout=4");
    List<String> command = inNetwork(dropping, options, "average-much");
    ranks.start(variables, command);
    Ranks.Result rank = ranks.await().get(0);
    assertEquals(RankLostException.EXIT_CODE, rank.exitCode(), rank.output());
    rank.expect("timed out: rank 0 does not take this rank at 10.9.9.2:")
        .expect(": Connect timed out, rank=1")
        .expect("whether a firewall lets its port through");
  }

  /** Each has a node and an interface of its own; ranks 1 and 2 have no route to each other. */
  @Test
  void ranksThatDoNotReachEachOtherAreNamedWithTheirAddresses() throws Exception {
    StringBuilder command =
        new StringBuilder("ip link set lo up; ip rule add pref 9 lookup local; ip rule del pref 0");
    for (String way : List.of("from 10.9.1.1 to 10.9.2.1", "from 10.9.2.1 to 10.9.1.1")) {
      command.append("; ip rule add pref 1 %s unreachable".formatted(way));
    }
    Ranks ranks = Ranks.prepare();
    for (int rank = 0; rank < 3; rank++) {
      command.append(
          "; ip link add lan%1$s type veth peer name far%1$s; ip addr add 10.9.%1$s.1/24 dev lan%1$s"
              .formatted(rank));
      command.append("; ip link set lan%1$s up; ip link set far%1$s up".formatted(rank));
    }
    for (int rank = 0; rank < 3; rank++) {
      Map<String, String> variables = ranks.variables(rank, 3);
      variables.put("MASTER_ADDR", "10.9.0.1");
      command.append("; sh %s node%s \"env".formatted(TwoNodes.SCRIPT, rank));
      variables.forEach((name, value) -> command.append(" '" + name + "=" + value + "'"));
      List<String> options = List.of("-Dgradientsync.tcp.interface=lan" + rank);
      Ranks.command(options, Programs.class, "unavailable")
          .forEach(word -> command.append(" '" + word + "'"));
      command.append("\" & true");
    }
    List<String> network = List.of("unshare", "--map-root-user", "--net", "sh", "-c");
    ranks.start(Map.of(), Stream.concat(network.stream(), Stream.of(command + "; wait")).toList());
    Ranks.Result all = ranks.await().get(0);
    for (int rank = 1; rank < 3; rank++) {
      int other = 3 - rank;
      String fate = "cannot be reached at /10\\.9\\.%s\\.1:\\d+: ".formatted(other);
      requireMatch(all, "caught rank " + other + " .* " + fate + ".*, rank=" + rank + ", ");
    }
    requireMatch(all, "caught rank [12] .* gave up .* cannot be reached at .*, rank=0, ");
  }

  /** The master's address is loopback, but other machines could reach the interface. */
  @Test
  void anInterfaceThatOthersReachNeedsASecret() throws Exception {
    Ranks ranks = Ranks.prepare();
    Map<String, String> variables = ranks.variables(0, 2);
    variables.put("GRADIENTSYNC_SECRET", "");
    List<String> options = List.of("-Dgradientsync.tcp.interface=lan");
    List<String> command = inNetwork("true", options, "unavailable");
    ranks.start(variables, command);
    ranks.await().get(0).expect("caught no secret, and the job's port can be reached");
  }

  @Test
  void aKilledRankIsNamedOnBothNodes() throws Exception {
    for (Ranks.Result node : lose("kill")) {
      requireMatch(node, LOST + " has died");
    }
  }

  /** Others wait for them, and find that their processes have ended. Each has a node. */
  @Test
  void ranksThatEndAfterALossAreNotTakenForIt() throws Exception {
    List<Ranks.Result> ranks =
        TwoNodes.run(
            6,
            rank -> rank,
            6,
            List.of(),
            List.of("-Dgradientsync.reducer=tcp"),
            Programs.class.getName(),
            "die-in-a-call");
    ranks.remove(1);
    for (Ranks.Result rank : ranks) {
      requireMatch(rank, "caught .*" + LOST + " has died");
    }
  }

  @Test
  void anExceptionIsNamedOnTheOtherNode() throws Exception {
    List<Ranks.Result> nodes = lose("throw");
    requireMatch(nodes.get(0), LOST + ".*IllegalStateException: the data ran out");
    requireMatch(nodes.get(1), "rank 1 ends the job");
  }

  @Test
  void aRankThatDoesNotComeSaysWhereItIs() throws Exception {
    List<Ranks.Result> nodes = lose("late", "-Dgradientsync.reports=" + folder);
    String text = nodes.get(0).output() + nodes.get(1).output();
    assertEquals(2, text.split("what each of 3 ranks was doing:", -1).length, text);
    Ranks.Result all = new Ranks.Result(0, text);
    requireMatch(all, "timed out: .*" + LOST);
    requireMatch(all, "\n  rank 0 \\(host=node0, .*waits for rank 1 since ");
    requireMatch(all, "\n  " + LOST + " has made no call, .*Programs.late");
    requireMatch(all, "\n  rank 2 \\(host=node1, .*waits for rank 1 since ");
  }

  @Test
  void nodesThatShareNoFolderHaveASummaryEach() throws Exception {
    List<Ranks.Result> nodes = lose("late", "-Dgradientsync.reports=" + folder + "/HOST");
    requireMatch(nodes.get(0), "\n  rank 0 \\(host=node0, .*waits for rank 1 since ");
    requireMatch(nodes.get(0), "\n  rank 1 has written no report: .* sees another folder");
    requireMatch(nodes.get(1), "\n  " + LOST + " has made no call, .*Programs.late");
    requireMatch(nodes.get(1), "\n  rank 2 \\(host=node1, .*waits for rank 1 since ");
  }

  /** Both ranks have the same process id, so neither can find the other's files by it. */
  @Test
  void ranksInPidNamespacesOfTheirOwnShareTheMemoryOfTheNode() throws Exception {
    List<String> below =
        List.of(
            "unshare",
            "--map-root-user",
            "--mount",
            "--pid",
            "--fork",
            "--mount-proc",
            "--kill-child");
    List<Ranks.Result> job = Ranks.run(below, 2, List.of(), Programs.class, "average");
    for (Ranks.Result rank : job) {
      assertEquals(0, rank.exitCode(), rank.output());
      rank.expect(" of 2: shared, average 0.5");
    }
  }
}
