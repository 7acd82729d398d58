package org.gradientsync.spi;

/**
 * A way in which the ranks of a job come to life, found with {@link java.util.ServiceLoader}.
 * {@link org.gradientsync.GradientSync#create()} asks each one whether this process was started by
 * it.
 */
public interface Launcher {
  /**
   * A short name.
   *
   * @return for example {@code mpi}
   */
  String name();

  /**
   * Whether this process is a rank of such a job. Looks at the environment only: nothing native is
   * loaded.
   *
   * @return true if {@link #connect} is the way to the other ranks
   */
  boolean launched();

  /**
   * Joins the job, or returns what an earlier call in this process made. It lives until the JVM
   * ends.
   *
   * @param settings what the user asked for
   * @return all ranks of the job
   * @throws org.gradientsync.UnavailableException if the backend cannot work here
   */
  RankGroup connect(Settings settings);
}
