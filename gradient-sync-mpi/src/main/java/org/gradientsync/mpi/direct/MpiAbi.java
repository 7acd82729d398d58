package org.gradientsync.mpi.direct;

import java.nio.ByteBuffer;

/**
 * What a C program takes from {@code mpi.h} when it is compiled: the values of constants and the
 * size of handles. A handle is a {@code long} in Java. A function that takes a shorter handle reads
 * the lower half of a register.
 *
 * @param name the MPI that has these values, for texts
 * @param handleBytes the size of a communicator or a request: 4 or 8
 * @param world MPI_COMM_WORLD
 * @param bytes MPI_BYTE
 * @param ints MPI_INT
 * @param errorsReturn MPI_ERRORS_RETURN
 * @param noInfo MPI_INFO_NULL
 * @param sharedMemory MPI_COMM_TYPE_SHARED
 * @param serialized MPI_THREAD_SERIALIZED
 * @param anySource MPI_ANY_SOURCE
 */
record MpiAbi(
    String name,
    int handleBytes,
    long world,
    long bytes,
    long ints,
    long errorsReturn,
    long noInfo,
    int sharedMemory,
    int serialized,
    int anySource) {

  /** Reads a handle that MPI has written to the start of some memory. */
  long handle(ByteBuffer memory) {
    return handleBytes == Long.BYTES ? memory.getLong(0) : Integer.toUnsignedLong(memory.getInt(0));
  }
}
