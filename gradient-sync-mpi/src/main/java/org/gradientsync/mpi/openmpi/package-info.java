/**
 * MPI by way of Open MPI's Java bindings: the only package that imports {@code mpi.*}, which Open
 * MPI 6 drops.
 *
 * <p>{@link JavaBindings} implements {@link org.gradientsync.mpi.binding.MpiCalls}, {@link
 * JavaComm} a communicator, and {@link JavaRequest} a persistent request.
 *
 * <p>The bindings take direct buffers for what does not block, ignore their position, and count
 * elements in an {@code int}, so a message is sent from index 0 as bytes. Loading {@code mpi.MPI}
 * without its native library can end the JVM, so {@link org.gradientsync.mpi.MpiBinding} looks for
 * the library first.
 */
package org.gradientsync.mpi.openmpi;
