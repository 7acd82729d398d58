package org.gradientsync.mpi.binding;

/** A request of MPI. Starting and testing it allocate nothing. */
public interface MpiRequest {
  /**
   * Starts a persistent request.
   *
   * @throws MpiFailure if MPI fails
   */
  void start() throws MpiFailure;

  /**
   * Lets MPI make progress.
   *
   * @return true if the request is complete, or not active
   * @throws MpiFailure if what was requested has failed
   */
  boolean test() throws MpiFailure;

  /**
   * Cancels an active request. Does nothing if the other rank's message has arrived.
   *
   * @throws MpiFailure if MPI fails
   */
  void cancel() throws MpiFailure;

  /**
   * Frees the request. If it is active, MPI may still use its memory.
   *
   * @throws MpiFailure if MPI fails
   */
  void free() throws MpiFailure;
}
