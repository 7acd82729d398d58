package org.gradientsync.tcp;

import java.io.IOException;

/** Whether a process has file descriptors left; another attempt to connect does not help if not. */
final class Descriptors {
  private static final String EXHAUSTED = "Too many open files"; // in the process, or the system

  private Descriptors() {}

  static boolean areExhausted(IOException e) {
    return String.valueOf(e.getMessage()).contains(EXHAUSTED);
  }

  /** What to tell the user. */
  static String text(int rank) {
    return "rank "
        + rank
        + " has no file descriptors left: "
        + EXHAUSTED
        + "; raise the limit by ulimit -n where the rank is started: it may need one for each other"
        + " rank, beside those of its program";
  }
}
