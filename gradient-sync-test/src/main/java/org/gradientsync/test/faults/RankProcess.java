package org.gradientsync.test.faults;

import java.io.IOException;

/** What a process has to know that mpirun started as one rank. */
final class RankProcess {
  private static final String OWN = own();

  private RankProcess() {}

  private static String own() {
    String rank = System.getenv("OMPI_COMM_WORLD_RANK");
    return rank != null ? rank : System.getenv("PMIX_RANK");
  }

  /** Whether this process may be a certain rank; true if mpirun has not said which one it is. */
  static boolean mayBe(int rank) {
    return OWN == null || OWN.equals(Integer.toString(rank));
  }

  /** Ends this process as {@code kill -9} does: no hook runs, and nothing is given back. */
  static void kill() {
    try {
      new ProcessBuilder("kill", "-9", Long.toString(ProcessHandle.current().pid()))
          .start()
          .waitFor();
    } catch (IOException e) {
      // there is no such program here
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    Runtime.getRuntime().halt(137); // nearly the same
  }
}
