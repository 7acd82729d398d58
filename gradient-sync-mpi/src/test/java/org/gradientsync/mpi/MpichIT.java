package org.gradientsync.mpi;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.gradientsync.test.contract.RankTests;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DynamicNode;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.api.io.TempDir;

/** Tests ranks that MPICH's launcher starts, beside an Open MPI that is the default. */
@Tag("mpich") // script/test leaves it out where there is none
class MpichIT {
  private static final String LAUNCHER = "mpiexec.hydra"; // Intel MPI's has this name, too

  @BeforeEach
  void requireMpich() {
    boolean found =
        Arrays.stream(System.getenv("PATH").split(File.pathSeparator))
            .anyMatch(folder -> Files.isExecutable(Path.of(folder, LAUNCHER)));
    if (!found) {
      String reason =
          "SKIPPED: there is no " + LAUNCHER + " on the PATH; install the package mpich";
      System.out.println(reason);
      Assumptions.abort(reason);
    }
  }

  @Test
  void ranksOfMpichAverage() throws Exception {
    List<String> options = new ArrayList<>(Mpirun.withoutMpiJar());
    options.add("-Dgradientsync.reducer=mpi");
    options.add("-Dgradientsync.dev.rendezvous=messages");
    Mpirun.Result job = run(options, "average");
    assertEquals(0, job.exitCode(), job.output());
    for (int rank = 0; rank < 3; rank++) {
      job.expect("rank " + rank + " of 3: mpi, average 1.0");
    }
  }

  @TestFactory
  DynamicNode contractsHold(@TempDir Path folder) throws Exception {
    List<String> arguments = new ArrayList<>(List.of(folder.toString()));
    for (Class<?> contract :
        List.of(
            MpiCommunicatorContract.class,
            MpiReducerContract.class,
            MpiCollectivesContract.class,
            SharedReducerContract.class)) {
      arguments.add(contract.getName());
    }
    List<String> command = new ArrayList<>(List.of(LAUNCHER, "-np", "3"));
    command.addAll(
        Mpirun.java(Mpirun.withoutMpiJar(), RankTests.class, arguments.toArray(String[]::new)));
    return RankJob.report(3, folder, Mpirun.execute(command, Map.of(), Mpirun.SECONDS));
  }

  @Test
  void theLibraryOfOpenMpiIsRefused() throws Exception {
    Path openMpi =
        Path.of(System.getProperty("open.mpi", "/usr/lib/x86_64-linux-gnu/libmpi.so.40"));
    Assumptions.assumeTrue(Files.exists(openMpi), () -> "SKIPPED: there is no " + openMpi);
    List<String> options = new ArrayList<>(Mpirun.withoutMpiJar());
    options.add("-Dgradientsync.mpi.binding=" + openMpi);
    Mpirun.Result job = run(options, "unavailable");
    assertEquals(0, job.exitCode(), job.output());
    job.expect(
            "caught the launcher and the library are of different MPIs: launcher=MPICH, library=")
        .expect("version=Open MPI v");
  }

  /** Hydra takes an exit with 0 for success, even without MPI_Finalize. */
  @Test
  void aRankThatExitsWhileOthersNeedItFailsTheJob() throws Exception {
    Mpirun.Result job = run(Mpirun.withoutMpiJar(), "exit");
    assertEquals(1, job.exitCode(), job.output());
    job.expect("rank 1 ends the job: its program called System.exit while other ranks needed it");
  }

  private static Mpirun.Result run(List<String> options, String program) throws Exception {
    List<String> command = new ArrayList<>(List.of(LAUNCHER, "-np", "3"));
    command.addAll(Mpirun.java(options, Programs.class, program));
    return Mpirun.execute(command, Map.of(), Mpirun.SECONDS);
  }
}
