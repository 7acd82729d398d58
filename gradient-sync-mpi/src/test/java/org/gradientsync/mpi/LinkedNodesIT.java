package org.gradientsync.mpi;

import static org.gradientsync.mpi.LostRank.requireMatch;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Runs jobs on nodes whose links are slow or fail in the middle of an average. */
@Tag("links")
class LinkedNodesIT {
  private static final String OF_NODE_2 = "rank [23] \\(host=node2, process=\\d+\\)";

  private static final Pattern DOES_NOT_START =
      Pattern.compile("MPI has not started|does not return at the start of the job");

  @TempDir Path folder;

  private Mpirun.Result run(int nodes, String rate, int slow, String fault, String order)
      throws Exception {
    Mpirun.require();
    Mpirun.Result job = null;
    // A slow link may not let a job start in time while other tests run.
    for (int more = 0;
        more < 4 && (job == null || DOES_NOT_START.matcher(job.output()).find());
        more++) {
      Path own = Files.createTempDirectory(folder, "nodes"); // a job's files, which others misread
      job =
          new LinkedNodes(own, nodes, rate, slow)
              .run(120, AveragesOverLinks.class, own.toString(), fault, order);
    }
    return job;
  }

  @ParameterizedTest
  @ValueSource(strings = {"ranks", "any"})
  void aSlowNodeIsWaitedFor(String order) throws Exception {
    Mpirun.Result job = run(3, "100mbit", 2, "none", order);
    assertEquals(0, job.exitCode(), job.output());
    for (int rank = 0; rank < 6; rank++) {
      job.expect("rank " + rank + " uses two-level")
          .expect("rank " + rank + " has all averages")
          .expect("rank " + rank + " has closed");
    }
  }

  @Test
  void aNodeWhoseLinkIsCutIsNamed() throws Exception {
    requireNamed(run(2, "20mbit", 0, "cut", "ranks"), "timed out: .*" + OF_NODE_2);
  }

  @Test
  void aRankThatIsStoppedOnAnotherNodeIsNamed() throws Exception {
    requireNamed(
        run(2, "20mbit", 0, "stop", "ranks"), "timed out: .*rank 3 \\(host=node2, process=\\d+\\)");
  }

  @Test
  void aNodeThatIsKilledIsNamed() throws Exception {
    Mpirun.Result job = run(2, "20mbit", 0, "kill", "ranks");
    // If mpirun sees its daemon's end before it misses the connection, it takes that for a failed
    // start, names no node, and ends all ranks before one of them can name it.
    for (int more = 0; more < 5 && job.output().contains("unable to reliably start"); more++) {
      job = run(2, "20mbit", 0, "kill", "ranks");
    }
    assertNotEquals(0, job.exitCode(), job.output());
    requireMatch(job.output(), "node2");
    assertFalse(job.output().contains("rank 0 has all averages"), job.output());
  }

  /** The ranks of node 1 throw, and close without waiting for the others. */
  private static void requireNamed(Mpirun.Result job, String pattern) {
    for (int rank = 0; rank < 2; rank++) {
      requireMatch(job.output(), "rank " + rank + " caught " + pattern);
      job.expect("rank " + rank + " has closed");
      assertFalse(job.output().contains("rank " + rank + " has all averages"), job.output());
    }
    assertFalse(job.output().contains("wrong: "), job.output());
  }
}
