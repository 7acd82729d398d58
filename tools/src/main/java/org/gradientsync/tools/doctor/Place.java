package org.gradientsync.tools.doctor;

import java.nio.file.Path;
import java.util.Map;

/**
 * This process's place in the job, according to the launcher's environment variables. Needs no MPI.
 *
 * @param launched whether the launcher of an MPI started this process
 * @param rank the rank, from 0; 0 if unknown
 * @param size the number of ranks; 0 if unknown
 * @param localRank the rank within its node; 0 if unknown
 * @param localSize the number of ranks on this node; 1 if unknown
 * @param folder this job's private folder on this node, or null
 */
record Place(boolean launched, int rank, int size, int localRank, int localSize, Path folder) {
  static Place of(Map<String, String> environment) {
    String rank = first(environment, "OMPI_COMM_WORLD_RANK", "PMIX_RANK");
    if (rank == null && environment.containsKey("RANK") && environment.containsKey("WORLD_SIZE")) {
      return new Place( // over TCP
          false,
          number(environment.get("RANK"), 0),
          number(environment.get("WORLD_SIZE"), 0),
          number(environment.get("LOCAL_RANK"), 0),
          number(environment.get("LOCAL_WORLD_SIZE"), 1),
          null);
    }
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

  /** Returns whether this rank makes the checks that one rank of each node makes for all. */
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
