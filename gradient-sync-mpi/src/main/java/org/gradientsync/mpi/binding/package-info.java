/**
 * A job of MPI, however Java calls it.
 *
 * <p>{@link MpiCalls}, {@link MpiComm} and {@link MpiRequest} are the few functions of MPI that a
 * job needs. {@code openmpi} and {@code direct} implement them, with {@link MpiFailure} for error
 * codes.
 *
 * <p>{@link MpiStart} starts MPI on a thread of its own, so that a rank that never comes ends in an
 * exception, and lets the ranks exchange their {@link org.gradientsync.core.backend.RankPlace}s.
 * {@link JobProcesses} finds this job's processes on the node if some are missing. The result is an
 * {@link MpiJob}: the ranks, their nodes, and {@link MpiMessage}s between them. Each call holds one
 * lock, so MPI needs no more than thread level SERIALIZED.
 */
package org.gradientsync.mpi.binding;
