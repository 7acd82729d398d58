package org.gradientsync.mpi.direct;

import com.sun.jna.NativeLibrary;
import com.sun.jna.Pointer;

/** Open MPI 4 and 5: a handle is a pointer, and a constant one points to a global symbol. */
final class OpenMpiAbi {
  static final String NAME = "Open MPI";

  private static final int SHARED = 0;
  private static final int SERIALIZED = 2;
  private static final int ANY_SOURCE = -1;

  private OpenMpiAbi() {}

  /** Whether a library is of this kind. */
  static boolean has(NativeLibrary library) {
    return Symbols.has(library, "ompi_mpi_comm_world");
  }

  static MpiAbi of(NativeLibrary library) {
    return new MpiAbi(
        NAME,
        Long.BYTES,
        address(library, "ompi_mpi_comm_world"),
        address(library, "ompi_mpi_byte"),
        address(library, "ompi_mpi_int"),
        address(library, "ompi_mpi_errors_return"),
        address(library, "ompi_mpi_info_null"),
        SHARED,
        SERIALIZED,
        ANY_SOURCE);
  }

  private static long address(NativeLibrary library, String symbol) {
    return Pointer.nativeValue(library.getGlobalVariableAddress(symbol));
  }
}
