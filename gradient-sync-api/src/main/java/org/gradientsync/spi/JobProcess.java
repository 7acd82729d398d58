package org.gradientsync.spi;

import java.util.function.IntPredicate;

/**
 * This process as one of a job's, for a launcher whose ranks are processes. The library ends it
 * together with the others after success, and ends the whole job after a failure: an uncaught
 * exception in one rank must not leave the others waiting.
 *
 * <p>The thread that ends the process calls it, maybe while others use the {@link Transport}.
 */
public interface JobProcess {
  /**
   * {@return whether the library ends the job; false if the program has started the backend and
   * ends it itself}
   */
  boolean isOwner();

  /**
   * {@return whether the backend has ended in this process, so that nothing may be sent any more:
   * by {@link #finish}, or by the program}
   */
  boolean isFinished();

  /**
   * {@return whether every rank has come to its end} The first call announces that this one has.
   * Does not block.
   */
  boolean haveAllCome();

  /** Ends the backend in this process, after {@link #haveAllCome}. May block. */
  void finish();

  /**
   * {@return the name of what {@link #finish} calls, for errors, for example {@code MPI_Finalize}}
   */
  String finishName();

  /**
   * {@return whether the job fails if this process exits with 0 before {@link #finish}, by its
   * launcher or the other ranks; otherwise the library aborts it}
   */
  default boolean earlyExitFails() {
    return true;
  }

  /**
   * Ends all processes of the job at once.
   *
   * @param code the exit code
   */
  void abort(int code);

  /**
   * {@return which ranks are known to have died or to be stopped, for example {@code rank 1
   * (host=node7, process=4711) is stopped}, or an empty text} Does not communicate.
   *
   * @param asked the ranks of the job to look at
   */
  String troubles(IntPredicate asked);
}
