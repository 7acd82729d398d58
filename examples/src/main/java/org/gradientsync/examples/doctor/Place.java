package org.gradientsync.examples.doctor;

import java.nio.file.Path;
import java.util.Map;

/**
 * Which rank this process is, by what its launcher put into the environment: known without MPI.
 *
 * @param launched whether a launcher started it
 * @param rank from 0; 0 if it is not known
 * @param size 0 if it is not known
 * @param localRank among the ranks of this node; 0 if it is not known
 * @param localSize ranks on this node; 1 if it is not known
 * @param folder of this job on this node, readable by its user alone; null if there is none
 */
record Place(boolean launched, int rank, int size, int localRank, int localSize, Path folder) {
  static Place of(Map<String, String> environment) {
    String rank = first(environment, "OMPI_COMM_WORLD_RANK", "PMIX_RANK");
    if (rank == null) {
      return new Place(false, 0, 1, 0, 1, null);
    }
    String session = environment.get("PMIX_SERVER_TMPDIR"); // the launcher deletes it at the end
    String job = environment.get("PMIX_NAMESPACE");
    return new Place(
        true,
        number(rank, 0),
        number(first(environment, "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS"), 0),
        number(first(environment, "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID"), 0),
        number(environment.get("OMPI_COMM_WORLD_LOCAL_SIZE"), 1),
        session == null || job == null
            ? null
            : Path.of(session, "gradient-sync-doctor-" + job.replaceAll("[^A-Za-z0-9.@_-]", "_")));
  }

  /** Whether it tries what one rank of each node tries for all. */
  boolean isFirstOfNode() {
    return localRank == 0;
  }

  private static String first(Map<String, String> environment, String one, String other) {
    return environment.getOrDefault(one, environment.get(other));
  }

  private static int number(String text, int otherwise) {
    try {
      return text == null ? otherwise : Integer.parseInt(text.strip());
    } catch (NumberFormatException e) {
      return otherwise;
    }
  }
}
