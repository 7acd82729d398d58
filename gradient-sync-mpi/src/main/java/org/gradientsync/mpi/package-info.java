/**
 * Ranks that mpirun, or another launcher of MPI, has started.
 *
 * <p>{@link MpiLauncher} joins them; its transport hands persistent messages to MPI. {@link
 * MpiBinding} chooses how Java calls MPI: through Open MPI's Java bindings ({@code openmpi}), or by
 * calls of the C library ({@code direct}). {@code binding} has what both share, the job included.
 *
 * <p>{@link MpiReducerProvider} provides {@code mpi}, which passes host memory to MPI. {@link
 * CudaAwareReducerProvider} provides {@code cuda-aware}, which passes GPU memory, once MPI has
 * proved that it takes it: {@link CudaAwareness} asks it, {@link CudaAwareProbe} tries it in a
 * child process that may crash, and {@link CudaAwareTrial} between these ranks.
 *
 * <p>{@link MpiTrial} and {@link MpiLibrary} look at an installation before it is loaded into this
 * process, and {@link LocalRankCheck} warns if a launcher's local rank is not the one that was
 * found.
 */
package org.gradientsync.mpi;
