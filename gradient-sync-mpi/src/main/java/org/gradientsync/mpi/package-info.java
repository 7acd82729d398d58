/**
 * Ranks that mpirun, or another launcher of MPI, has started.
 *
 * <p>{@link org.gradientsync.mpi.MpiLauncher} joins them; its transport hands persistent messages
 * to MPI. {@link org.gradientsync.mpi.MpiBinding} chooses how Java calls MPI: through Open MPI's
 * Java bindings ({@code openmpi}), or by calls of the C library ({@code direct}). {@code binding}
 * has what both share, the job included.
 *
 * <p>{@link org.gradientsync.mpi.MpiReducerProvider} provides {@code mpi}, which passes host memory
 * to MPI. {@link org.gradientsync.mpi.CudaAwareReducerProvider} provides {@code cuda-aware}, which
 * passes GPU memory, once MPI has proved that it takes it: {@link
 * org.gradientsync.mpi.CudaAwareness} asks it, {@link org.gradientsync.mpi.CudaAwareProbe} tries it
 * in a child process that may crash, and {@link org.gradientsync.mpi.CudaAwareTrial} between these
 * ranks.
 *
 * <p>{@link org.gradientsync.mpi.MpiTrial} and {@link org.gradientsync.mpi.MpiLibrary} look at an
 * installation before it is loaded into this process, and {@link
 * org.gradientsync.mpi.LocalRankCheck} warns if a launcher's local rank is not the one that was
 * found.
 */
package org.gradientsync.mpi;
