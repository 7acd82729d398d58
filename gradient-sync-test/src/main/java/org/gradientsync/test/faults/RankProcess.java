package org.gradientsync.test.faults;

import java.io.IOException;
import org.gradientsync.core.backend.LauncherVariables;

/** Identifies and ends a process that a launcher started as one rank. */
final class RankProcess {
  private RankProcess() {}

  /** Returns whether this process may be a certain rank; true if no launcher has set its rank. */
  static boolean mayBe(int rank) {
    return LauncherVariables.ofProcess()
        .job()
        .map(LauncherVariables.Job::rank)
        .filter(own -> own.matches("\\d+"))
        .map(own -> own.equals(Integer.toString(rank)))
        .orElse(true);
  }

  /** Ends this process as {@code kill -9} does: no shutdown hook runs, and nothing is released. */
  static void kill() {
    try {
      new ProcessBuilder("kill", "-9", Long.toString(ProcessHandle.current().pid()))
          .start()
          .waitFor();
    } catch (IOException e) {
      // no such program on this machine
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    Runtime.getRuntime().halt(137); // the closest that the JVM offers
  }
}
