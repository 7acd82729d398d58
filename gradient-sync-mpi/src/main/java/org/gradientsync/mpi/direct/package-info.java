/**
 * MPI by calls of its C library: nothing but the MPI of the launcher has to be installed.
 *
 * <p>{@link org.gradientsync.mpi.direct.LibrarySearch} finds {@code libmpi}, the one that belongs
 * to the launcher, and {@link org.gradientsync.mpi.direct.DirectLibrary} loads it once, globally,
 * because MPI loads its own plugins. {@link org.gradientsync.mpi.direct.DirectMpi}, {@link
 * org.gradientsync.mpi.direct.DirectComm} and {@link org.gradientsync.mpi.direct.DirectRequest}
 * make the calls, {@link org.gradientsync.mpi.direct.Functions} maps them with JNA, and {@link
 * org.gradientsync.mpi.direct.Codes} turns error codes into exceptions.
 *
 * <p>What {@code mpi.h} would tell a C compiler is an ABI: {@link
 * org.gradientsync.mpi.direct.OpenMpiAbi}, {@link org.gradientsync.mpi.direct.MpichAbi}, or {@link
 * org.gradientsync.mpi.direct.StandardAbi}, which MPI 5.0 defines. {@link
 * org.gradientsync.mpi.direct.Symbols} looks up constants that are addresses.
 *
 * <p>{@link org.gradientsync.mpi.direct.RequestCalls} makes the two calls of every message through
 * {@code java.lang.foreign} on JDK 22 and later, and through JNA before.
 */
package org.gradientsync.mpi.direct;
