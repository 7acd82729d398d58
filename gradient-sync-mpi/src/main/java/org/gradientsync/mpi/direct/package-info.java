/**
 * MPI by calls of its C library: nothing but the MPI of the launcher has to be installed.
 *
 * <p>{@link LibrarySearch} finds {@code libmpi}, the one that belongs to the launcher, and {@link
 * DirectLibrary} loads it once, globally, because MPI loads its own plugins. {@link DirectMpi},
 * {@link DirectComm} and {@link DirectRequest} make the calls, {@link Functions} maps them with
 * JNA, and {@link Codes} turns error codes into exceptions.
 *
 * <p>What {@code mpi.h} would tell a C compiler is an ABI: {@link OpenMpiAbi}, {@link MpichAbi}, or
 * {@link StandardAbi}, which MPI 5.0 defines. {@link Symbols} looks up constants that are
 * addresses.
 *
 * <p>{@link RequestCalls} makes the two calls of every message through {@code java.lang.foreign} on
 * JDK 22 and later, and through JNA before.
 */
package org.gradientsync.mpi.direct;
