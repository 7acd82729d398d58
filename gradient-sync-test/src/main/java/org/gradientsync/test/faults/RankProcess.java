package org.gradientsync.test.faults;

import java.io.IOException;

/** Identifies and ends a process that mpirun started as one rank. */
final class RankProcess {
  private static final String OWN = own();

  private RankProcess() {}

  private static String own() {
    String rank = System.getenv("OMPI_COMM_WORLD_RANK");
    return rank != null ? rank : System.getenv("PMIX_RANK");
  }

  /** Returns whether this process may be a certain rank; true if mpirun has not set its rank. */
  static boolean mayBe(int rank) {
    return OWN == null || OWN.equals(Integer.toString(rank));
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
