package org.gradientsync.mpi;

import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * Compares the local rank with the local ranks in launchers' environment variables. They differ if
 * containers or virtual machines share a node; then two ranks may use the same GPU.
 */
final class LocalRankCheck {
  /** The innermost launcher counts: processes of mpirun inherit Slurm's variables. */
  private static final List<String> INNERMOST_FIRST =
      List.of(
          "OMPI_COMM_WORLD_LOCAL_RANK",
          "MPI_LOCALRANKID",
          "PMI_LOCAL_RANK",
          "MV2_COMM_WORLD_LOCAL_RANK",
          "SLURM_LOCALID");

  private LocalRankCheck() {}

  /** Returns a warning if the launcher's local rank differs. */
  static Optional<String> warning(Map<String, String> environment, int rank, int localRank) {
    return INNERMOST_FIRST.stream()
        .filter(environment::containsKey)
        .findFirst()
        .filter(variable -> !environment.get(variable).equals(Integer.toString(localRank)))
        .map(
            variable ->
                ("local rank differs: rank=%s, localRank=%s, %s=%s;"
                        + " taking localRank, which counts the ranks of this node")
                    .formatted(rank, localRank, variable, environment.get(variable)));
  }
}
