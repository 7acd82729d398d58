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
   * Joins the job, or returns the group that an earlier call in this process created. The group
   * stays open until the JVM exits. It is the library's own group over the backend's {@link
   * Transport}; another implementation of {@link RankGroup} is refused.
   *
   * @param settings the user's settings
   * @return all ranks of the job
   * @throws org.gradientsync.UnavailableException if the backend cannot work here
   */
  RankGroup connect(Settings settings);
}
