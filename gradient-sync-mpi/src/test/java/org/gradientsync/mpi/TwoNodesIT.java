package org.gradientsync.mpi;

import static org.gradientsync.mpi.LostRank.lastLines;
import static org.gradientsync.mpi.LostRank.requireMatch;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.gradientsync.mpi.binding.LosingStart;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Runs jobs on two nodes: rank 0 on the first, the others on the second. */
@Tag("nodes")
class TwoNodesIT {
  private static final int RANKS = 3;
  private static final String LOST = "rank 1 \\(host=node2, process=\\d+\\)";

  @TempDir Path folder;
  private Map<String, String> nodes;

  @BeforeEach
  void makeNodes() throws IOException, InterruptedException {
    Mpirun.require();
    nodes = TwoNodes.environment(folder, 1);
  }

  /** With Open MPI's Java bindings, and without. */
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void ranksThatShareMemoryAreOnOneNodeWhateverMpiReports(boolean java) throws Exception {
    TwoNodes.shareMemory(folder);
    Mpirun.Result job =
        Mpirun.run(
            RANKS,
            Mpirun.SECONDS,
            nodes,
            java ? List.of() : Mpirun.withoutMpiJar(),
            Programs.class,
            "local");
    assertEquals(0, job.exitCode(), job.output());
    for (int rank = 0; rank < RANKS; rank++) {
      job.expect("local " + rank + " of " + RANKS + " by shared");
    }
    requireMatch(
        job.output(),
        "MPI reports ranks that can share memory on different nodes: rank=0 \\(host=node1, .*,"
            + " other=1 \\(host=node2, ");
    assertEquals(2, job.output().split("MPI reports ranks", -1).length, job.output());
    assertFalse(job.output().contains("local rank differs"), job.output());
  }

  @Test
  void aKilledRankIsNamedByThoseOfItsNode() throws Exception {
    Mpirun.Result job = lose("kill", "during", "reports");
    assertNotEquals(0, job.exitCode());
    requireMatch(job.output(), LOST + " has died, lastFinished=.*, rank=2");
  }

  @Test
  void aRankThatIsStuckAloneOnItsNodeSaysWhere() throws Exception {
    Mpirun.Result job = lose(2, "stick", "between", "reports");
    assertNotEquals(0, job.exitCode());
    requireMatch(lastLines(job), "(Exception|ended by rank \\d .*): timed out: .*" + LOST);
    requireMatch(job.output(), "\n  rank 0 \\(host=node1, .*waits for rank 1 since ");
    requireMatch(job.output(), "\n  " + LOST + " is in no call since .*stickInUserCode");
    requireMatch(report("reports", 0), "waits for rank 1 since ");
    requireMatch(report("reports", 1), "is in no call since .*stickInUserCode");
  }

  @Test
  void oneSummaryHasAStuckAndAKilledRankOfTheOtherNode() throws Exception {
    String where = folder.resolve("reports").toString();
    Mpirun.Result job = // mpirun would end the job before the time-out
        Mpirun.runHidden(
            4,
            nodes,
            List.of(),
            LosingRanks.class,
            "stick-and-kill",
            "between",
            "mpi",
            where,
            "host");
    requireNothingRuns(where);
    assertNotEquals(0, job.exitCode());
    String text = job.output();
    requireMatch(text, "Exception: timed out: .*" + LOST + " and rank 2 ");
    assertEquals(2, text.split("what each of 4 ranks was doing:", -1).length, text);
    requireMatch(text, "\n  rank 0 \\(host=node1, .*waits for rank 1 since ");
    requireMatch(text, "\n  rank 1 \\(host=node2, .*is in no call since .*stickInUserCode");
    requireMatch(text, "\n  rank 2 \\(host=node2, process=\\d+\\) has died\n");
    requireMatch(text, "\n  rank 3 \\(host=node2, .*waits for rank 1 since ");
    requireMatch(report("reports", 0), "waits for rank 1 since ");
    requireMatch(report("reports", 1), "is in no call since .*stickInUserCode");
    requireMatch(report("reports", 3), "waits for rank 1 since ");
  }

  @Test
  void nodesThatShareNoFolderHaveASummaryEach() throws Exception {
    Mpirun.Result job = lose("stick", "between", "reports-HOST"); // one folder per node
    assertNotEquals(0, job.exitCode());
    String text = job.output();
    requireMatch(text, "\n  rank 0 \\(host=node1, .*waits for rank 1 since ");
    requireMatch(text, "\n  rank 1 has written no report: .* sees another folder");
    requireMatch(text, "\n  " + LOST + " is in no call since .*stickInUserCode");
    requireMatch(report("reports-node1", 0), "waits for rank 1 since ");
    requireMatch(report("reports-node2", 1), "is in no call since .*stickInUserCode");
    requireMatch(report("reports-node2", 2), "waits for rank 1 since ");
  }

  private String report(String base, int rank) throws IOException {
    Path reports = folder.resolve(base);
    for (int level = 0; level < 2; level++) { // the job's folder, and the communicator's
      try (Stream<Path> all = Files.list(reports)) {
        reports = all.findFirst().orElseThrow();
      }
    }
    return Files.readString(reports.resolve("rank-" + rank + ".txt"));
  }

  @Test
  void aRankOfTheOtherNodeThatStopsInTheStartIsNamed() throws Exception {
    Mpirun.Result job =
        Mpirun.run(
            2,
            Mpirun.SECONDS,
            nodes,
            List.of(),
            LosingStart.class,
            folder.toString(),
            "MPI_Comm_dup",
            "any");
    assertNotEquals(0, job.exitCode(), job.output());
    requireMatch(
        job.output(),
        "caught timed out: MPI_Comm_dup .*: "
            + LOST
            + " may be stopped, or cannot be reached, rank=0");
  }

  @Test
  void anExceptionIsTheLastThingThatIsRead() throws Exception {
    Pattern last =
        Pattern.compile("ended by " + LOST + ": .*IllegalStateException: the data ran out");
    Mpirun.Result job = lose("throw", "between", "reports");
    // On a busy machine, mpirun kills ranks that it has told to end before they have had their say.
    for (int i = 0; i < 2 && !last.matcher(lastLines(job)).find(); i++) {
      job = lose("throw", "between", "reports-" + i);
    }
    assertNotEquals(0, job.exitCode());
    requireMatch(lastLines(job), last.pattern());
  }

  /** Both ranks have the same process id, so neither can find the other's files by it. */
  @Test
  void ranksInPidNamespacesOfTheirOwnShareTheMemoryOfTheNode() throws Exception {
    Mpirun.Result job = Mpirun.runInPidNamespaces(2, List.of(), Programs.class, "average");
    assertEquals(0, job.exitCode(), job.output());
    job.expect("rank 0 of 2: shared, average 0.5").expect("rank 1 of 2: shared, average 0.5");
  }

  private Mpirun.Result lose(String manner, String phase, String reports) throws Exception {
    return lose(RANKS, manner, phase, reports);
  }

  private Mpirun.Result lose(int ranks, String manner, String phase, String reports)
      throws Exception {
    String where = folder.resolve(reports).toString();
    Mpirun.Result job =
        Mpirun.run(
            ranks,
            Mpirun.SECONDS,
            nodes,
            List.of(),
            LosingRanks.class,
            manner,
            phase,
            "mpi",
            where,
            "host");
    requireNothingRuns(where);
    return job;
  }

  /** Process numbers of the nodes mean nothing outside, but command lines are visible. */
  private static void requireNothingRuns(String argument) throws InterruptedException {
    List<ProcessHandle> left = running(argument);
    for (int i = 0; i < 200 && !left.isEmpty(); i++) {
      Thread.sleep(100); // mpirun may end shortly before the last process that it has killed
      left = running(argument);
    }
    assertEquals(List.of(), left);
  }

  private static List<ProcessHandle> running(String argument) {
    return ProcessHandle.allProcesses()
        .filter(p -> p.info().commandLine().orElse("").contains(argument))
        .toList();
  }
}
