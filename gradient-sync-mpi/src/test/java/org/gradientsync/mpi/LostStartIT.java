package org.gradientsync.mpi;

import static org.gradientsync.mpi.LostRank.NAME;
import static org.gradientsync.mpi.LostRank.requireMatch;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.file.Path;
import java.util.List;
import org.gradientsync.RankLostException;
import org.gradientsync.mpi.binding.LosingStart;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Stops a rank during MPI's start or end. The other ranks must end and name it. */
class LostStartIT {
  private static final int RANKS = 3;

  @TempDir Path folder;

  private Mpirun.Result stopBefore(String call, String threads) throws Exception {
    Mpirun.Result job =
        Mpirun.run(RANKS, List.of(), LosingStart.class, folder.toString(), call, threads);
    assertEquals(RankLostException.EXIT_CODE, job.exitCode(), job.output());
    return job;
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "MPI_Init",
        "MPI_Iallgather",
        "MPI_Comm_dup",
        "MPI_Comm_split_type",
        "MPI_Bcast",
        "MPI_Allgather"
      })
  void aRankThatStopsInTheStartIsNamed(String call) throws Exception {
    Mpirun.Result job = stopBefore(call, "any");
    requireMatch(job, "WARN .*rank [02] has waited 3 s: .*" + NAME + " is stopped");
    requireMatch(
        job, "caught timed out: .*: " + NAME + " is stopped, rank=[02], size=3, waited=5 s");
    requireMatch(job, "again MPI could not be started by an earlier create.*" + NAME);
  }

  @Test
  void whereOneThreadOnlyMayCallMpiTheProcessEnds() throws Exception {
    Mpirun.Result job = stopBefore("MPI_Comm_dup", "one");
    requireMatch(
        job, "gradient-sync: the process ends: timed out: MPI_Comm_dup .*" + NAME + " is stopped");
  }

  @Test
  void oneThreadThatMayCallMpiStartsAndEnds() throws Exception {
    Mpirun.Result job =
        Mpirun.run(2, List.of(), LosingStart.class, folder.toString(), "nothing", "one-and-end");
    assertEquals(0, job.exitCode(), job.output());
    job.expect("created 0").expect("created 1");
  }

  @Test
  void aRankThatStopsInMpisEndIsNamed() throws Exception {
    Mpirun.Result job = stopBefore("MPI_Finalize", "any");
    requireMatch(
        job, "rank [02] ends: MPI_Finalize has not returned in 5 s, " + NAME + " is stopped");
  }
}
