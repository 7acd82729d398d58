package org.gradientsync.mpi.binding;

/**
 * The functions of MPI that a job calls, however Java reaches them. The caller makes one call at a
 * time, unless a call blocks.
 */
public interface MpiCalls {
  /** {@return the path of the C library, or the name by which the system's loader finds it} */
  String library();

  /**
   * {@return the version of the MPI library, for example {@code Open MPI v4.1.4}} Can be called
   * before {@link #initialize}.
   */
  String version();

  /**
   * {@return the number by which this MPI calls the thread level SERIALIZED} Higher levels have
   * higher numbers.
   */
  int serialized();

  /**
   * Initializes MPI and asks for the thread level SERIALIZED.
   *
   * @return the level that there is
   * @throws MpiFailure if MPI fails
   */
  int initialize() throws MpiFailure;

  /**
   * Whether MPI has been initialized in this process, by whomever.
   *
   * @return true also after {@link #finish}
   * @throws MpiFailure if MPI fails
   */
  boolean isInitialized() throws MpiFailure;

  /**
   * Whether MPI has been finalized in this process, by whomever.
   *
   * @return false before it is initialized
   * @throws MpiFailure if MPI fails
   */
  boolean isFinalized() throws MpiFailure;

  /**
   * The thread level of an MPI that has been initialized.
   *
   * @return a number to compare with {@link #serialized}
   * @throws MpiFailure if MPI fails
   */
  int threadLevel() throws MpiFailure;

  /**
   * Whether the caller's thread is the one that has initialized MPI.
   *
   * @return true if it is
   * @throws MpiFailure if MPI fails
   */
  boolean isMainThread() throws MpiFailure;

  /**
   * This host.
   *
   * @return the name by which MPI calls it
   * @throws MpiFailure if MPI fails
   */
  String host() throws MpiFailure;

  /** {@return MPI's own communicator of all ranks of the job} */
  MpiComm world();

  /**
   * Whether the other ranks live when one has died. Only after {@link #initialize}.
   *
   * @return false if MPI ends the job, or this class cannot reach the functions for it
   * @throws MpiFailure if MPI fails
   */
  boolean letsOthersLive() throws MpiFailure;

  /**
   * Finalizes MPI. Blocks until every rank does.
   *
   * @throws MpiFailure if MPI fails
   */
  void finish() throws MpiFailure;
}
