package org.gradientsync.mpi;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Runs jobs on a real Slurm that has this machine as its only node. */
@Tag("slurm")
@Execution(ExecutionMode.SAME_THREAD) // its node refuses a step now and then if several start
class SlurmIT {
  private static final List<String> NONE = List.of();

  /** Waits as {@code sbatch --wait}, which looks too rarely. Its name is the file of the output. */
  private static final String WAIT =
      "id=$(sbatch --parsable \"$@\") || exit;"
          + " while squeue --noheader --jobs=$id | grep -q .; do sleep 0.1; done;"
          + " cat \"$0\"; scontrol show job $id | grep -q ExitCode=0:0";

  @TempDir Path folder;
  private Path slurm;

  @BeforeEach
  void requireSlurm() throws IOException, InterruptedException {
    slurm = folder.resolve("slurm.sh");
    try (InputStream script = SlurmIT.class.getResourceAsStream("slurm.sh")) {
      Files.write(slurm, script.readAllBytes());
    }
    Process probe =
        new ProcessBuilder("sh", slurm.toString(), "probe").redirectErrorStream(true).start();
    String text = new String(probe.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    if (probe.waitFor() != 0) {
      String reason = "SKIPPED: no Slurm can be started here: " + text.strip();
      System.out.println(reason);
      Assumptions.abort(reason);
    }
  }

  @ParameterizedTest
  @CsvSource({
    "none, 'srun started 2 processes, but this one finds itself alone: SLURM_STEP_NUM_TASKS=2'",
    "pmi2, 'started 2 processes, but this one finds itself alone: PMI_SIZE=2'"
  })
  void tasksThatDoNotFindEachOtherDoNotTrainAlone(String mpi, String text) throws Exception {
    Mpirun.Result job = srun("--mpi=" + mpi, NONE, "unavailable");
    assertEquals(0, job.exitCode(), job.output());
    job.expect(text)
        .expect("expected=2, found=1, rank=0; ")
        .expect("expected=2, found=1, rank=1; ");
  }

  @Test
  void tasksCanTrainAloneOnPurpose() throws Exception {
    Mpirun.Result job = srun("--mpi=none", List.of("-Dgradientsync.dev.launcher=none"), "local");
    assertEquals(0, job.exitCode(), job.output());
    job.expect("local 0 of 1");
  }

  @Test
  void tasksThatHavePmixAreOneJob() throws Exception {
    Mpirun.require();
    Mpirun.Result job = srun("--mpi=pmix", NONE, "local");
    assertEquals(0, job.exitCode(), job.output());
    job.expect("local 0 of 2").expect("local 1 of 2");
  }

  @Test
  void tasksStopAfterTheSameStep() throws Exception {
    Mpirun.require();
    List<String> command = command("srun", "--mpi=pmix", "-n", "2", "--overcommit");
    StopIT.requireStopped(
        2, Mpirun.below(command, NONE, StopPrograms.class, "processes", "slurm", "USR1", "once"));
  }

  /** Debian's Slurm speaks PMI-1, too, which Debian's MPICH was built for. */
  @Test
  @Tag("mpich")
  void tasksThatHavePmi2AreOneJobOfMpich() throws Exception {
    Path library = Path.of(System.getProperty("mpich", "/usr/lib/x86_64-linux-gnu/libmpich.so.12"));
    Assumptions.assumeTrue(Files.exists(library), () -> "SKIPPED: there is no " + library);
    List<String> options = new ArrayList<>(Mpirun.withoutMpiJar());
    options.add("-Dgradientsync.mpi.binding=" + library);
    options.add("-Dgradientsync.reducer=mpi");
    options.add("-Dgradientsync.dev.rendezvous=messages");
    Mpirun.Result job = srun("--mpi=pmi2", options, "average");
    assertEquals(0, job.exitCode(), job.output());
    job.expect("rank 0 of 2: mpi, average 0.5").expect("rank 1 of 2: mpi, average 0.5");
  }

  @Test
  void theBatchScriptOfTheExamplesTrains() throws Exception {
    Mpirun.require();
    String output = folder.resolve("train-output").toString();
    Path script = Path.of("..", "examples", "slurm", "train.sbatch").toRealPath();
    List<String> command = command("sh", "-c", WAIT, output, "--nodes=1", "--ntasks=2");
    command.addAll(List.of("--overcommit", "--output=" + output, script.toString(), "average"));
    Map<String, String> environment =
        Map.of(
            "CLASSES", System.getProperty("java.class.path"),
            "MAIN", Programs.class.getName(),
            "JAVA", Path.of(System.getProperty("java.home"), "bin", "java").toString(),
            "JAVA_OPTS",
                "-XX:TieredStopAtLevel=1 -Dgradientsync.reports=off -Djava.library.path="
                    + System.getProperty("java.library.path"));
    Mpirun.Result job = Mpirun.execute(command, environment, Mpirun.SECONDS);
    assertEquals(0, job.exitCode(), job.output());
    job.expect(": 2 ranks on 1 nodes: node1")
        .expect("rank 0 of 2: shared, average 0.5")
        .expect("rank 1 of 2: shared, average 0.5");
  }

  @Test
  void theProcessOfABatchScriptIsAlone() throws Exception {
    Mpirun.Result job = batch("\"$@\"");
    assertEquals(0, job.exitCode(), job.output());
    job.expect("SLURM_NTASKS=2").expect("local 0 of 1");
  }

  @Test
  void mpirunInABatchScriptHasItsOwnSize() throws Exception {
    Mpirun.require();
    Mpirun.Result job = batch("mpirun --oversubscribe --bind-to none -np 3 env \"$@\"");
    assertEquals(0, job.exitCode(), job.output());
    job.expect("SLURM_NTASKS=2").expect("local 0 of 3").expect("local 2 of 3");
  }

  @Test
  void mpirunInATaskHasItsOwnSize() throws Exception {
    Mpirun.require();
    List<String> command = command("srun", "--mpi=none", "-n", "2", "--overcommit", "sh", "-c");
    command.add(
        "[ $SLURM_PROCID = 1 ] ||"
            + " exec mpirun --oversubscribe --bind-to none -np 2 env \"$@\"");
    command.add("sh");
    Mpirun.Result job = Mpirun.below(command, NONE, Programs.class, "local");
    assertEquals(0, job.exitCode(), job.output());
    job.expect("local 0 of 2").expect("local 1 of 2");
  }

  private Mpirun.Result srun(String option, List<String> jvmOptions, String program)
      throws IOException, InterruptedException {
    List<String> command = command("srun", option, "-n", "2", "--overcommit");
    return Mpirun.below(command, jvmOptions, Programs.class, program);
  }

  /** Runs lines of a batch script in which {@code "$@"} is a program. */
  private Mpirun.Result batch(String lines) throws IOException, InterruptedException {
    Path script = folder.resolve("script");
    Files.writeString(script, "#!/bin/sh\nenv | grep SLURM_NTASKS\n" + lines + "\n");
    String output = folder.resolve("output").toString();
    List<String> command = command("sh", "-c", WAIT, output);
    command.addAll(List.of("-n", "2", "-o", output, script.toString()));
    return Mpirun.below(command, NONE, Programs.class, "local");
  }

  private List<String> command(String... command) {
    String state = folder.resolve("slurm").toString();
    List<String> all = new ArrayList<>(List.of("sh", slurm.toString(), state));
    all.addAll(List.of(command));
    return all;
  }
}
