package org.gradientsync.tcp;

import java.io.IOException;
import java.nio.channels.SocketChannel;

/** Whether this process has file descriptors left, and what to tell the user if not. */
final class Descriptors {
  private static final String EXHAUSTED = "Too many open files"; // in the process, or the system

  private Descriptors() {}

  /** Whether a failure of this process says so, or, in whatever language, another attempt. */
  static boolean areExhausted(IOException e) {
    if (e.getCause() == null && String.valueOf(e.getMessage()).contains(EXHAUSTED)) {
      return true;
    }
    try (SocketChannel probe = SocketChannel.open()) {
      return !probe.isOpen();
    } catch (IOException exhausted) {
      return true;
    }
  }

  /** What to tell the user. */
  static String text(int rank) {
    return ("rank %s has no file descriptors left: %s; raise the limit by ulimit -n where the rank is"
            + " started: it may need one for each other rank, beside those of its program")
        .formatted(rank, EXHAUSTED);
  }
}
