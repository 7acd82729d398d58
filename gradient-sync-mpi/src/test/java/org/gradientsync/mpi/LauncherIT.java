package org.gradientsync.mpi;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Tests which launcher a process detects when it was started as one of several. */
class LauncherIT {
  private static final List<String> NONE = List.of();
  private static final List<String> RANK =
      List.of("env", "OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_RANK=0");
  private static final String[] MPIRUN = {
    "mpirun", "--oversubscribe", "--bind-to", "none", "-np", "2", "env"
  };

  @ParameterizedTest
  @CsvSource({
    "SLURM_STEP_NUM_TASKS=2, SLURM_PROCID=1, srun started 2 processes",
    "PMI_SIZE=2, PMI_RANK=1, an mpirun that is not Open MPI's started 2 processes",
    "WORLD_SIZE=2, RANK=1, 'torchrun, or another launcher, started 2 processes'"
  })
  void oneOfSeveralDoesNotTrainAlone(String size, String rank, String who) throws Exception {
    List<String> environment = List.of("env", size, rank);
    Mpirun.Result job = Mpirun.below(environment, NONE, Programs.class, "unavailable");
    assertEquals(0, job.exitCode(), job.output());
    job.expect("caught " + who + ", but this one finds itself alone: " + size)
        .expect("expected=2, found=1, rank=1; start the job with ");
    List<String> alone = List.of("-Dgradientsync.dev.launcher=none");
    Mpirun.below(environment, alone, Programs.class, "local").expect("local 0 of 1");
  }

  @Test
  void ranksThatMpiDoesNotFindAreMissed() throws Exception {
    Mpirun.require();
    String drop =
        "unset $(env | sed -n 's/^\\(PMIX_[^=]*\\)=.*/\\1/p; s/^\\(OMPI_MCA_[^=]*\\)=.*/\\1/p');"
            + " exec \"$@\"";
    Mpirun.Result job =
        Mpirun.below(mpirun("sh", "-c", drop, "sh"), NONE, Programs.class, "unavailable");
    assertEquals(0, job.exitCode(), job.output());
    for (int rank = 0; rank < 2; rank++) {
      job.expect("OMPI_COMM_WORLD_SIZE=2, expected=2, found=1, rank=" + rank + "; let each rank");
    }
  }

  @Test
  void aCharsetInWhichJavaMisreadsTheVariablesDoesNoHarm() throws Exception {
    Mpirun.require();
    List<String> options =
        List.of(
            "-Dfile.encoding=UTF-16",
            "-Dsun.stdout.encoding=UTF-8",
            "-Dstdout.encoding=UTF-8",
            "-Dsun.stderr.encoding=UTF-8",
            "-Dstderr.encoding=UTF-8");
    Mpirun.Result job = Mpirun.below(mpirun(), options, Programs.class, "local");
    assertEquals(0, job.exitCode(), job.output());
    job.expect("local 0 of 2").expect("local 1 of 2");
  }

  @Test
  void ranksAverageWhateverTheContextClassLoader() throws Exception {
    Mpirun.require();
    Mpirun.Result job = Mpirun.below(mpirun(), NONE, Programs.class, "context");
    assertEquals(0, job.exitCode(), job.output());
    job.expect("rank 0 of 2: shared, average 0.5").expect("rank 1 of 2: shared, average 0.5");
  }

  @Test
  void ranksAverageWhereAnotherClassLoaderHasTheBindings() throws Exception {
    Mpirun.require();
    Mpirun.Result job = Mpirun.below(mpirun(), NONE, Programs.class, "loaders");
    assertEquals(0, job.exitCode(), job.output());
    job.expect("another class loader of this process has loaded libmpi_java")
        .expect("rank 0 of 2: shared, average 0.5")
        .expect("rank 1 of 2: shared, average 0.5");
  }

  @Test
  void ofNestedLaunchersTheInnermostCounts() throws Exception {
    Mpirun.require();
    List<String> command =
        mpirun("SLURM_LOCALID=0", "SLURM_PROCID=0", "SLURM_STEP_NUM_TASKS=3", "WORLD_SIZE=4");
    Mpirun.Result job = Mpirun.below(command, NONE, Programs.class, "local");
    assertEquals(0, job.exitCode(), job.output());
    job.expect("local 0 of 2").expect("local 1 of 2");
    assertFalse(job.output().contains("local rank differs"), job.output());
  }

  @Test
  void ranksOfMpirunCanTrainAloneOnPurpose() throws Exception {
    Mpirun.require();
    List<String> alone = List.of("-Dgradientsync.dev.launcher=none");
    Mpirun.Result job = Mpirun.below(mpirun(), alone, Programs.class, "local");
    assertEquals(0, job.exitCode(), job.output());
    assertEquals(3, job.output().split("local 0 of 1", -1).length, job.output());
  }

  @Test
  void ranksThatAreThreadsOfEachTaskAreWarnedOf() throws Exception {
    List<String> task = List.of("env", "SLURM_STEP_NUM_TASKS=2", "SLURM_PROCID=0");
    Mpirun.Result job = Mpirun.below(task, NONE, Programs.class, "threads");
    assertEquals(0, job.exitCode(), job.output());
    job.expect("of 2").expect("LocalRanks.run(2) in each of 2 processes that srun started");
  }

  @Test
  void aFolderThatTakesNoLibraryIsNamedAtEachAttempt() throws Exception {
    List<String> options =
        List.of("-Djna.tmpdir=/proc", "-Dgradientsync.mpi.binding=/nowhere/libmpi.so.40");
    Mpirun.Result job = Mpirun.below(RANK, options, Programs.class, "twice");
    assertEquals(0, job.exitCode(), job.output());
    job.expect("texts 1 caught [JNA cannot be used: class=com.sun.jna.Native, reason=")
        .expect("start java with -Djava.io.tmpdir=DIR and -Djna.tmpdir=DIR");
  }

  @Test
  void aUserWithoutANameKeepsTheWorkingFolderClean(@TempDir Path folder) throws Exception {
    List<String> command = new ArrayList<>(List.of("env", "-C", folder.toString(), "-u"));
    command.add("XDG_CACHE_HOME");
    command.addAll(RANK);
    List<String> options =
        List.of("-Duser.home=?", "-Dgradientsync.mpi.binding=/nowhere/libmpi.so.40");
    Mpirun.Result job = Mpirun.below(command, options, Programs.class, "unavailable");
    assertEquals(0, job.exitCode(), job.output());
    job.expect("caught this MPI does not load");
    try (Stream<Path> files = Files.list(folder)) {
      assertEquals(List.of(), files.toList());
    }
  }

  @Test
  @Tag("jdk25")
  void nativeAccessThatIsDeniedIsNamedAtEachAttempt() throws Exception {
    Path java = ModularProgramIT.jdk25();
    for (String binding : List.of("java", "direct")) {
      List<String> command = new ArrayList<>(RANK);
      command.addAll(
          List.of(
              java.toString(),
              "--illegal-native-access=deny",
              "-Djava.library.path=" + System.getProperty("java.library.path"),
              "-Dgradientsync.mpi.binding=" + binding,
              "-cp",
              System.getProperty("java.class.path"),
              Programs.class.getName(),
              "twice"));
      Mpirun.Result job = Mpirun.execute(command, Map.of(), Mpirun.SECONDS);
      assertEquals(0, job.exitCode(), job.output());
      job.expect("texts 1 caught [")
          .expect(binding.equals("java") ? "class=mpi.MPI" : "class=com.sun.jna.Native")
          .expect("denies native access; start java with --enable-native-access=ALL-UNNAMED]");
    }
  }

  private static List<String> mpirun(String... more) {
    List<String> command = new ArrayList<>(List.of(MPIRUN));
    command.addAll(List.of(more));
    return command;
  }
}
