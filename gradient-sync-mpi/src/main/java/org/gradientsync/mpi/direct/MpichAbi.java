package org.gradientsync.mpi.direct;

import java.util.List;

/**
 * MPICH 3.1 and later, and the MPIs with the same values, such as those of Intel, HPE Cray and
 * MVAPICH: a handle is an {@code int}.
 */
final class MpichAbi {
  static final String NAME = "MPICH";

  static final MpiAbi VALUES =
      new MpiAbi(
          NAME,
          Integer.BYTES,
          0x44000000, // MPI_COMM_WORLD
          0x4c00010d, // MPI_BYTE
          0x4c000405, // MPI_INT
          0x54000001, // MPI_ERRORS_RETURN
          0x1c000000, // MPI_INFO_NULL
          1, // MPI_COMM_TYPE_SHARED
          2, // MPI_THREAD_SERIALIZED
          -2); // MPI_ANY_SOURCE

  private static final List<String> NAMES = List.of(NAME, "Intel(R) MPI", "MVAPICH", "CRAY MPICH");

  private MpichAbi() {}

  /** Whether a library that describes itself so is of this kind. */
  static boolean isNameOf(String version) {
    return NAMES.stream().anyMatch(version::startsWith);
  }
}
