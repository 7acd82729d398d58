package org.gradientsync.mpi;

import static org.gradientsync.mpi.LostRank.NAME;
import static org.gradientsync.mpi.LostRank.lastLines;
import static org.gradientsync.mpi.LostRank.requireMatch;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Loses a rank, and tests the messages of the others, what their users see, and that nothing is
 * left behind.
 */
class LostRankIT {
  @TempDir Path reports;

  @ParameterizedTest
  @CsvSource({
    "kill, before, mpi",
    "kill, during, mpi",
    "kill, during, shared",
    "stop, during, mpi",
    "stop, during, shared",
    "stick, before, mpi",
    "stick, between, shared",
    "throw, before, shared",
    "throw, between, mpi",
    "late, between, shared"
  })
  void theOthersSayWhatHappened(String manner, String phase, String reducer) throws Exception {
    Mpirun.Result job = LostRank.lose(3, "host", manner, phase, reducer, reports);
    // In host memory each wait is for one rank, so the message says more than where GPUs wait.
    String last = "(Exception|ended by rank \\d .*): timed out: .*" + NAME;
    switch (manner) {
      case "kill" ->
          requireMatch(
              job, NAME + " has died, lastFinished=(allReduce.*, call=\\d+|none), waited=");
      case "stop" -> {
        requireMatch(job, "WARN .*rank [02] has waited 1 s for .*" + NAME);
        requireMatch(job, "timed out: .*" + NAME + ".* in time, lastFinished=.*waited=3 s");
        requireMatch(lastLines(job), last);
      }
      case "stick" -> {
        requireMatch(job, "\n  rank 0 .*waits for rank 1 since ");
        requireMatch(
            job,
            "\n  rank 1 .*" + LostRank.idle(phase) + ".*, thread \"main\" at .*stickInUserCode");
        requireMatch(lastLines(job), last);
        requireReports();
      }
      case "late" ->
          requireMatch(
              job, "WARN .*has waited 1 s for " + NAME + ", lastFinished=allReduce.*, call=5");
      default -> {}
    }
  }

  @Test
  void mpirunHasTheLastWordOnARankThatItSeesKilled() throws Exception {
    Mpirun.Result job =
        Mpirun.run(
            3,
            List.of(),
            LosingRanks.class,
            "kill",
            "during",
            "shared",
            reports.toString(),
            "host");
    assertNotEquals(0, job.exitCode());
    requireMatch(lastLines(job), "process rank 1 .* exited on signal 9");
  }

  @Test
  void aRankThatAbortsDeletesTheFilesOfAKilledOne() throws Exception {
    // no other rank could delete them
    LostRank.lose(2, "host", "kill", "during", "shared", reports);
  }

  @Test
  void aRankThatIsAZombieHasDied() throws Exception {
    Mpirun.Result job =
        Mpirun.runUnreaped(
            3,
            List.of(),
            LosingRanks.class,
            "kill",
            "during",
            "shared",
            reports.toString(),
            "host");
    assertNotEquals(0, job.exitCode());
    requireMatch(job, NAME + " has died, lastFinished=.*, waited=");
    assertFalse(job.output().contains("timed out: "), job.output());
  }

  private void requireReports() throws IOException {
    Path folder = onlyIn(onlyIn(reports)); // the job's, and the communicator's
    for (int rank = 0; rank < 3; rank++) {
      String report = Files.readString(folder.resolve("rank-" + rank + ".txt"));
      requireMatch(report, "last calls, oldest first:");
      requireMatch(report, "\"main\" ");
      requireMatch(report, "java.version=");
      requireMatch(report, "gradient-sync=\\d"); // from the jar's manifest
      requireMatch(report, "OMPI_COMM_WORLD_RANK=" + rank);
      assertFalse(report.contains("OMPI_ARGV"), report);
    }
    requireMatch(Files.readString(folder.resolve("summary.txt")), "rank 1 .*stickInUserCode");
  }

  private static Path onlyIn(Path parent) throws IOException {
    List<Path> folders;
    try (Stream<Path> all = Files.list(parent)) {
      folders = all.toList();
    }
    assertEquals(1, folders.size(), folders::toString);
    Path folder = folders.get(0);
    String mode = PosixFilePermissions.toString(Files.getPosixFilePermissions(folder));
    assertEquals("rwx------", mode);
    return folder;
  }
}
