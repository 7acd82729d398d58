package org.gradientsync.test.faults;

import java.io.IOException;
import java.util.Objects;
import java.util.Optional;
import java.util.stream.Stream;

/** Identifies and ends a process that a launcher started as one rank. */
final class RankProcess {
  private static final Optional<String> OWN =
      Stream.of("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "RANK")
          .map(System::getenv)
          .filter(Objects::nonNull)
          .findFirst();

  private RankProcess() {}

  /** Returns whether this process may be a certain rank; true if no launcher has set its rank. */
  static boolean mayBe(int rank) {
    return OWN.isEmpty() || OWN.get().equals(Integer.toString(rank));
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
