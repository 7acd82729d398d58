package org.gradientsync.mpi.direct;

import com.sun.jna.NativeLibrary;

/**
 * The ABI that the MPI standard defines since 5.0, which {@code libmpi_abi} has: a handle has the
 * size of a pointer, and a constant one is a small number.
 */
final class StandardAbi {
  static final MpiAbi VALUES =
      new MpiAbi(
          "the standard ABI",
          Long.BYTES,
          0x101, // MPI_COMM_WORLD
          0x247, // MPI_BYTE
          0x209, // MPI_INT
          0x142, // MPI_ERRORS_RETURN
          0x130, // MPI_INFO_NULL
          221, // MPI_COMM_TYPE_SHARED
          2048, // MPI_THREAD_SERIALIZED
          -1); // MPI_ANY_SOURCE

  private StandardAbi() {}

  /** Whether a library is of this kind. Others have the function, too, but no version. */
  static boolean has(NativeLibrary library) {
    if (!Symbols.has(library, "MPI_Abi_get_version")) {
      return false;
    }
    int[] major = {-1};
    int[] minor = {-1};
    int code = library.getFunction("MPI_Abi_get_version").invokeInt(new Object[] {major, minor});
    return code == 0 && major[0] >= 1;
  }
}
