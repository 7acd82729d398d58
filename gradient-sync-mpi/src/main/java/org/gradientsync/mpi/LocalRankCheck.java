package org.gradientsync.mpi;

import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * Compares the local rank that MPI gives with those that launchers put into the environment. They
 * differ where containers or virtual machines share a node, and then two ranks may take the same
 * GPU.
 */
final class LocalRankCheck {
  /** Of nested launchers the innermost counts: Slurm's variables go on below an mpirun. */
  private static final List<String> INNERMOST_FIRST =
      List.of(
          "OMPI_COMM_WORLD_LOCAL_RANK",
          "MPI_LOCALRANKID",
          "PMI_LOCAL_RANK",
          "MV2_COMM_WORLD_LOCAL_RANK",
          "SLURM_LOCALID");

  private LocalRankCheck() {}

  /** A warning, if a launcher says something else. */
  static Optional<String> warning(Map<String, String> environment, int rank, int localRank) {
    return INNERMOST_FIRST.stream()
        .filter(environment::containsKey)
        .findFirst()
        .filter(variable -> !environment.get(variable).equals(Integer.toString(localRank)))
        .map(
            variable ->
                "local rank differs: rank="
                    + rank
                    + ", localRank="
                    + localRank
                    + ", "
                    + variable
                    + "="
                    + environment.get(variable)
                    + "; taking localRank, which counts the ranks that share memory");
  }
}
