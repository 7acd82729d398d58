package org.gradientsync.core.backend;

import static java.nio.charset.StandardCharsets.UTF_16;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.gradientsync.Logged;
import org.gradientsync.UnavailableException;
import org.gradientsync.spi.Settings;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests the comparison of launchers' variables with the number of ranks. */
class LauncherVariablesTest {
  @TempDir Path folder;

  @ParameterizedTest
  @CsvSource({
    "SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=1, SLURM_STEP_NUM_TASKS, srun --mpi=pmix",
    "PMI_SIZE=2 PMI_RANK=1, PMI_SIZE, mpirun -np 2 instead",
    "PMI_SIZE=2 PMI_RANK=1 SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=1, PMI_SIZE, mpirun -np 2",
    "MPI_LOCALNRANKS=2 MPI_LOCALRANKID=1, MPI_LOCALNRANKS, mpirun -np 2 instead",
    "WORLD_SIZE=2 RANK=1, WORLD_SIZE, mpirun -np 2 instead",
    "WORLD_SIZE=2 RANK=1 TORCHELASTIC_RUN_ID=x OMPI_COMM_WORLD_SIZE=1, WORLD_SIZE, mpirun -np 2",
    "WORLD_SIZE=2 RANK=1 SLURM_STEP_NUM_TASKS=1 SLURM_PROCID=0, WORLD_SIZE, mpirun -np 2",
    "OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=1, OMPI_COMM_WORLD_SIZE, OMPI_ and PMIX_"
  })
  void oneOfSeveralThatIsAloneIsRefused(String environment, String variable, String remedy) {
    String text = refused(environment, 1);
    assertTrue(
        text.contains("itself alone: " + variable + "=2, expected=2, found=1, rank=1"), text);
    assertTrue(text.contains(remedy), text);
    assertTrue(text.contains("set gradientsync.dev.launcher=none"), text);
  }

  @Test
  void anotherSizeIsRefused() {
    String text = refused("SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=3 PMIX_RANK=0", 2);
    assertTrue(text.contains("another number of ranks: SLURM_STEP_NUM_TASKS=4"), text);
    assertTrue(text.contains("expected=4, found=2, rank=3"), text);
    assertTrue(refused("OMPI_COMM_WORLD_SIZE=4", 2).contains("rank=(unknown)"));
    assertTrue(
        refused("GRADIENTSYNC_RUN_RANKS=2", 1)
            .contains(
                "GRADIENTSYNC_RUN_RANKS=2, expected=2, found=1, rank=(unknown); its launcher"));
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "PATH=/bin",
        "SLURM_NTASKS=2 SLURM_PROCID=0", // the process of an sbatch script
        "SLURM_STEP_NUM_TASKS=2", // not a task of a step
        "SLURM_STEP_NUM_TASKS=1 SLURM_PROCID=0",
        "SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=0 OMPI_COMM_WORLD_SIZE=1",
        "OMPI_COMM_WORLD_SIZE=1",
        "PMI_SIZE=1 PMI_RANK=0",
        "WORLD_SIZE=2", // a word that others use, too
        "WORLD_SIZE=1 RANK=0",
        "PMI_SIZE=many",
        "PMI_SIZE=-3",
        "PMI_SIZE=99999999999"
      })
  void aloneGoesOn(String environment) {
    LauncherVariables variables = variables(environment);
    variables.requireSize(1);
    assertEquals(Optional.empty(), variables.job());
  }

  @ParameterizedTest
  @CsvSource({
    "WORLD_SIZE=2, WORLD_SIZE=2 is set",
    "RANK=1 MASTER_PORT=1, RANK=1 is set",
    "MASTER_ADDR=node0 MASTER_PORT=1, MASTER_ADDR=node0 and MASTER_PORT are set",
    "RANK=0 WORLD_SIZE=1, ''",
    "RANK=0 WORLD_SIZE=1 MASTER_ADDR=node0 MASTER_PORT=1, ''"
  })
  void halfOfTheVariablesIsWarnedOf(String environment, String text) {
    List<String> lines = Logged.lines(() -> variables(environment).requireSize(1));
    assertEquals(text.isEmpty() ? 0 : 1, lines.size(), lines::toString);
    assertTrue(lines.stream().allMatch(line -> line.contains(text)), lines::toString);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=0 PMIX_RANK=0",
        "SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=0 OMPI_COMM_WORLD_SIZE=4", // a daemon on each node
        "WORLD_SIZE=8 RANK=0 OMPI_COMM_WORLD_SIZE=4",
        "WORLD_SIZE=8 RANK=0 SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=0 PMIX_RANK=0",
        "MPI_LOCALNRANKS=2 PMIX_RANK=0",
        "GRADIENTSYNC_RUN_RANKS=4 PMIX_RANK=0"
      })
  void agreeingJobsGoOn(String environment) {
    variables(environment).requireSize(4);
  }

  @Test
  void theLauncherIsNamed() {
    assertEquals(
        new LauncherVariables.Job("srun", "SLURM_STEP_NUM_TASKS", 2, "0"),
        variables("SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=0").job().orElseThrow());
    assertEquals(
        new LauncherVariables.Job("mpirun", "OMPI_COMM_WORLD_SIZE", 3, "(unknown)"),
        variables("SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=0 OMPI_COMM_WORLD_SIZE=3")
            .job()
            .orElseThrow());
    assertTrue(variables("PMIX_RANK=0").areForOpenMpi());
    assertTrue(variables("OMPI_COMM_WORLD_SIZE=1").areForOpenMpi());
    assertTrue(!variables("PMI_SIZE=2").areForOpenMpi());
    assertTrue(variables("PMI_SIZE=2 PMI_RANK=0").areForMpich());
    assertTrue(!variables("PMI_SIZE=1 PMI_RANK=0").areForMpich());
    assertTrue(!variables("PMI_SIZE=2 PMI_RANK=0 PMIX_RANK=0").areForMpich());
  }

  @Test
  void anEnvironmentThatJavaMisreadsIsReadAgain() throws Exception {
    Map<String, String> misread = Map.of("\u4f4d", "\u5049");
    assertSame(misread, LauncherVariables.environment(misread, UTF_8, folder));
    Path raw = folder.resolve("environ");
    Files.writeString(raw, "A=b=c\0OMPI_COMM_WORLD_SIZE=2\0EMPTY=\0=x\0");
    assertEquals(
        Map.of("A", "b=c", "OMPI_COMM_WORLD_SIZE", "2", "EMPTY", ""),
        LauncherVariables.environment(misread, UTF_16, raw));
    String text =
        assertThrows(
                UnavailableException.class,
                () -> LauncherVariables.environment(misread, UTF_16, folder.resolve("none")))
            .getMessage();
    assertTrue(text.contains("file.encoding=UTF-16"), text);
  }

  @Test
  void thisProcessesEnvironmentIsThatOfJava() {
    assertEquals(System.getenv(), LauncherVariables.environment());
  }

  @Test
  void noLauncherCanBeAskedFor() {
    assertTrue(!new Settings(Map.of()).isAlone());
    assertTrue(new Settings(Map.of("dev.launcher", "none")).isAlone());
    String text =
        assertThrows(
                IllegalArgumentException.class,
                () -> new Settings(Map.of("dev.launcher", "srun")).isAlone())
            .getMessage();
    assertEquals("no such launcher: gradientsync.dev.launcher=srun; give none, or nothing", text);
  }

  private static String refused(String environment, int found) {
    LauncherVariables variables = variables(environment);
    return assertThrows(UnavailableException.class, () -> variables.requireSize(found))
        .getMessage();
  }

  private static LauncherVariables variables(String text) {
    Map<String, String> environment = new HashMap<>();
    for (String variable : text.split(" ")) {
      environment.put(variable.split("=")[0], variable.split("=")[1]);
    }
    return new LauncherVariables(environment);
  }
}
