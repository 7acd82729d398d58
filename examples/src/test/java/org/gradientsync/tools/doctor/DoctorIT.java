package org.gradientsync.tools.doctor;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.jr.ob.JSON;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import org.gradientsync.examples.Run;
import org.gradientsync.examples.Script;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Runs the doctor through its launch script, on sound and on broken installations. */
class DoctorIT {
  private static final String NONE = "No problems found.";
  private static final Path DOCTOR = Script.BIN.resolve("doctor");

  @TempDir Path folder;

  @Test
  void alone() throws Exception {
    Run run = Script.alone(DOCTOR).run(folder);
    run.prints("gradient-sync doctor: 1 rank", "JDK", "/dev/shm", "GPUs", "Reducer");
    run.prints("launcher           local", "chosen             local");
    run.printsLike(" +usable +no: .*"); // these tests hide the GPUs
    assertVerdict(run);
  }

  @Test
  void oneOfSeveralThatIsAloneIsAProblem() throws Exception {
    Script task = Script.alone(DOCTOR).set("SLURM_STEP_NUM_TASKS", "2").set("SLURM_PROCID", "1");
    Run run = task.run(folder).exits(1);
    run.printsLike(".*srun started 2 processes, but this one finds itself alone: SLURM_STEP_NUM.*");
    run.printsLike(".*start the job with srun --mpi=pmix, .*");
    task.set("JAVA_OPTS", "-Dgradientsync.dev.launcher=none");
    assertVerdict(task.run(folder).prints("chosen             local"));
  }

  @Test
  void processesOfARankCannotJoinUnderMpich() throws Exception {
    Script task = Script.alone(DOCTOR).set("PMI_RANK", "0").set("PMI_SIZE", "2");
    assertVerdict(task.run(folder).printsLike(" +chosen +not tried: an MPI of MPICH's kind .*"));
  }

  @Test
  void ranksThatMpiDoesNotFindAreAProblem() throws Exception {
    String drop = "unset $(env | sed -n 's/^\\(PMIX_[^=]*\\|OMPI_MCA_[^=]*\\)=.*/\\1/p')";
    Run run = Script.underMpirun(2, script(drop, "exec " + DOCTOR).toString()).run(folder).exits(1);
    run.printsLike(".*mpirun started 2 processes, but this one finds itself alone: OMPI_COMM_.*");
    run.printsLike(".*let each rank have all the variables that Open MPI's mpirun -np 2 sets, .*");
  }

  @Test
  void aloneAsJson() throws Exception {
    Run run = Script.alone(DOCTOR).run(folder, "--json");
    JSON.std.mapFrom(run.out());
    assertTrue(run.out().contains("\"Reducer\": {\"launcher\": \"local\""), run::toString);
    assertEquals(run.code() == 0, run.out().contains("\"problems\": []"), run::toString);
  }

  @Test
  void twoRanksArePrintedAsOnePage() throws Exception {
    Run run = Script.underMpirun(2, "doctor").run(folder);
    run.prints("gradient-sync doctor: 2 ranks", "local rank         rank 0: 0 of 2");
    run.printsLike(" +launcher +mpi");
    run.printsLike(" +ranks +2");
    run.printsLike(" +Java bindings +usable");
    run.printsLike(" +library version +Open MPI v.*");
    assertEquals(1, run.out().lines().filter("JDK"::equals).count(), run::toString);
    assertVerdict(run);
  }

  @Test
  void brokenLibraryIsTriedElsewhere() throws Exception {
    String option = "-Djava.library.path=" + brokenLibrary();
    String problem = ".*Open MPI's Java bindings cannot be used: .*file too short.*";
    Script.alone(DOCTOR).set("JAVA_OPTS", option).run(folder).exits(1).printsLike(problem);
    Run run = Script.underMpirun(2, "doctor").set("JAVA_OPTS", option).run(folder).exits(1);
    run.prints("gradient-sync doctor: 2 ranks").printsLike(problem);
    run.printsLike(" +chosen +not tried: Open MPI's Java bindings are not usable on rank 0");
  }

  @Test
  void brokenLibraryOfOneRankIsThatRanks() throws Exception {
    Path script =
        script(
            "[ $OMPI_COMM_WORLD_RANK = 1 ] && export JAVA_OPTS=-Djava.library.path="
                + brokenLibrary(),
            "exec " + DOCTOR);
    Run run = Script.underMpirun(2, script.toString()).run(folder).exits(1);
    run.prints("gradient-sync doctor: 2 ranks").printsLike(".*file too short.*\\(rank 1\\)");
  }

  @Test
  void oneCpuIsAProblem() throws Exception {
    Assumptions.assumeTrue(Runtime.getRuntime().availableProcessors() > 1, "there is one CPU only");
    Path script =
        script(
            "cpu=$(sed -n 's/^Cpus_allowed_list:[^0-9]*\\([0-9]*\\).*/\\1/p' /proc/self/status)",
            "exec taskset -c $cpu " + DOCTOR);
    Script.alone(script)
        .run(folder)
        .exits(1)
        .printsLike(".*the JVM sees only one of this machine's CPUs.*");
  }

  @Test
  void rankThatNeverTellsIsNamed() throws Exception {
    Path script =
        script(
            "[ $OMPI_COMM_WORLD_RANK = 1 ] && exec sleep 60", "exec " + DOCTOR + " --seconds 15");
    Run run = Script.underMpirun(2, script.toString()).run(folder).exits(1);
    run.prints("gradient-sync doctor: facts of rank 0, of 2 ranks", "1. no facts came from rank 1");
  }

  @Test
  void rankThatCannotReachRank0TellsItsOwn() throws Exception {
    Path script =
        script(
            "[ $OMPI_COMM_WORLD_RANK = 0 ] && exec sleep 60", "exec " + DOCTOR + " --seconds 15");
    Run run = Script.underMpirun(2, script.toString()).run(folder).exits(1);
    run.prints(
        "Rank 0 could not be reached, so this is what rank 1 can tell.",
        "1. no facts came from rank 0");
  }

  @Test
  void rankThatMpirunEndsTellsWhatItKnows() throws Exception {
    Path script =
        script(
            "if [ $OMPI_COMM_WORLD_RANK = 1 ]; then",
            "  until ls $PMIX_SERVER_TMPDIR/gradient-sync-doctor-*/0.1; do sleep 0.1; done",
            "  exit 5",
            "fi",
            "exec " + DOCTOR);
    Run run = Script.underMpirun(2, script.toString()).run(folder).exits(5);
    run.prints("gradient-sync doctor: facts of rank 0, of 2 ranks");
    run.printsLike(".*doctor was ended from outside, so facts are missing.*");
  }

  @Test
  void wrongOptionIsBadUse() throws Exception {
    Script.alone(DOCTOR).run(folder, "--loud").exits(2).complainsInOneLine("Unknown option");
  }

  /** The machine may have problems, but the exit code must match the page. */
  private static void assertVerdict(Run run) {
    boolean none = run.out().lines().anyMatch(NONE::equals);
    assertEquals(none ? 0 : 1, run.code(), run::toString);
    assertEquals(none, run.out().lines().noneMatch("Problems"::equals), run::toString);
  }

  private Path brokenLibrary() throws Exception {
    Path lib = Files.createDirectories(folder.resolve("lib"));
    Path file = lib.resolve(System.mapLibraryName("mpi_java"));
    return (Files.exists(file) ? file : Files.createFile(file)).getParent();
  }

  private Path script(String... lines) throws Exception {
    Path script = folder.resolve("rank");
    Files.writeString(script, "#!/usr/bin/env bash\n" + String.join("\n", List.of(lines)) + "\n");
    return Files.setPosixFilePermissions(script, PosixFilePermissions.fromString("rwx------"));
  }
}
