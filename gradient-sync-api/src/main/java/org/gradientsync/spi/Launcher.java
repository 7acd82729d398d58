package org.gradientsync.spi;

import java.util.Set;

/**
 * A way to start the ranks of a job, found with {@link java.util.ServiceLoader}. {@link
 * org.gradientsync.GradientSync#create()} asks each launcher whether it started this process.
 */
public interface Launcher {
  /** {@return a short name, for example {@code mpi}} */
  String name();

  /**
   * {@return whether this launcher started the process, so that {@link #connect} can join the other
   * ranks} It only checks the environment and loads no native libraries.
   */
  boolean launched();

  /**
   * As {@link #launched()}, for a launcher whose ranks may also be named by settings. Then the
   * ranks are not those that the environment describes, and may be threads.
   *
   * @param settings the user's settings
   * @return true if {@link #connect} can join the other ranks
   */
  default boolean launched(Settings settings) {
    return launched();
  }

  /**
   * {@return which launcher counts if several have started this process: from 0 to 1000, the
   * highest counts}
   *
   * @param settings the user's settings
   */
  default int priority(Settings settings) {
    return 100;
  }

  /**
   * {@return the settings that this launcher reads in addition to {@link Settings#NAMES}, without
   * the prefix {@code gradientsync.}} The library warns of settings that no launcher and no
   * provider reads.
   */
  default Set<String> settings() {
    return Set.of();
  }

  /**
   * Joins the job, or returns what an earlier call of the same rank returned and nobody has closed.
   * The library makes everything else from it. It keeps a transport with a {@link
   * Transport#process} open until the JVM exits, and closes others with the rank's last sync.
   *
   * @param settings the user's settings
   * @return all ranks of the job, and messages between them
   * @throws org.gradientsync.UnavailableException if the backend cannot work here
   * @throws org.gradientsync.RankLostException if not all ranks join in time
   */
  Transport connect(Settings settings);
}
