package org.gradientsync.mpi;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests the launchers' environment variables against MPI's own answer. */
class LocalRankCheckTest {
  @Test
  void agreementIsSilent() {
    assertEquals(Optional.empty(), LocalRankCheck.warning(Map.of(), 3, 1));
    assertEquals(
        Optional.empty(),
        LocalRankCheck.warning(
            Map.of("OMPI_COMM_WORLD_LOCAL_RANK", "1", "SLURM_LOCALID", "1"), 3, 1));
  }

  @Test
  void theInnermostLauncherCounts() {
    Map<String, String> mpirunInOneTask =
        Map.of("OMPI_COMM_WORLD_LOCAL_RANK", "1", "SLURM_LOCALID", "0");
    assertEquals(Optional.empty(), LocalRankCheck.warning(mpirunInOneTask, 3, 1));
    String warning = LocalRankCheck.warning(mpirunInOneTask, 3, 0).orElseThrow();
    assertTrue(warning.contains("OMPI_COMM_WORLD_LOCAL_RANK=1"), warning);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "OMPI_COMM_WORLD_LOCAL_RANK",
        "MPI_LOCALRANKID",
        "PMI_LOCAL_RANK",
        "MV2_COMM_WORLD_LOCAL_RANK",
        "SLURM_LOCALID"
      })
  void everyLauncherIsHeard(String variable) {
    String warning = LocalRankCheck.warning(Map.of(variable, "0"), 3, 1).orElseThrow();
    assertTrue(warning.contains(variable + "=0"), warning);
    assertTrue(warning.contains("rank=3, localRank=1"), warning);
  }
}
