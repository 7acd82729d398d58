package org.gradientsync.spi;

/**
 * A way to start the ranks of a job, found with {@link java.util.ServiceLoader}. {@link
 * org.gradientsync.GradientSync#create()} asks each launcher whether it started this process.
 */
public interface Launcher {
  /**
   * A short name.
   *
   * @return for example {@code mpi}
   */
  String name();

  /**
   * Whether this launcher started the process. It only checks the environment and loads no native
   * libraries.
   *
   * @return true if {@link #connect} can join the other ranks
   */
  boolean launched();

  /**
   * Joins the job, or returns what an earlier call of the same rank returned. The library makes
   * everything else from it, and keeps it open until the JVM exits.
   *
   * @param settings the user's settings
   * @return all ranks of the job, and messages between them
   * @throws org.gradientsync.UnavailableException if the backend cannot work here
   * @throws org.gradientsync.RankLostException if not all ranks join in time
   */
  Transport connect(Settings settings);
}
