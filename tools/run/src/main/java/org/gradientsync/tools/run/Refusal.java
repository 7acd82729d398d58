package org.gradientsync.tools.run;

import java.util.Map;
import java.util.Optional;

/** Pages of text by which a launcher refuses a job, each with one sentence on what to do. */
final class Refusal {
  private static final Map<String, String> SENTENCES =
      Map.of(
          "There are not enough slots available",
          "the launcher has room for fewer ranks, one for each core: ask for fewer by -np, or add"
              + " --oversubscribe",
          "attempt to run as root",
          "this Open MPI refuses to run as root: run it as another user, or set"
              + " OMPI_ALLOW_RUN_AS_ROOT=1 and OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1");

  private volatile String sentence;

  /** Reads a line of the launcher. */
  void read(String line) {
    SENTENCES.forEach(
        (text, advice) -> {
          if (line.contains(text)) {
            sentence = advice;
          }
        });
  }

  /** Returns what to do, or empty if the launcher has not refused the job. */
  Optional<String> sentence() {
    return Optional.ofNullable(sentence);
  }
}
