package org.gradientsync.tools.run;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** Runs a small program that says something about itself. */
final class Tool {
  private static final long LIMIT_SECONDS = 10;

  private Tool() {}

  /**
   * What a program has printed, both its outputs.
   *
   * @param good whether it ended in time with code 0
   */
  record Answer(boolean good, String output) {
    /** Returns the first line with content, or the empty string. */
    String firstLine() {
      return output.lines().map(String::strip).filter(l -> !l.isEmpty()).findFirst().orElse("");
    }

    /** Returns the last line with content, or the empty string. */
    String lastLine() {
      return output
          .lines()
          .map(String::strip)
          .filter(l -> !l.isEmpty())
          .reduce((a, b) -> b)
          .orElse("");
    }
  }

  static Answer ask(String... command) {
    try {
      Process process =
          new ProcessBuilder(List.of(command))
              .redirectErrorStream(true)
              .redirectInput(ProcessBuilder.Redirect.from(new java.io.File("/dev/null")))
              .start();
      Thread end = new Thread(() -> endInTime(process), "limit");
      end.setDaemon(true);
      end.start();
      String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
      int code = process.waitFor();
      end.interrupt();
      return new Answer(code == 0, output);
    } catch (IOException e) {
      return new Answer(false, String.valueOf(e.getMessage()));
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return new Answer(false, "interrupted");
    }
  }

  private static void endInTime(Process process) {
    try {
      if (!process.waitFor(LIMIT_SECONDS, TimeUnit.SECONDS)) {
        process.descendants().forEach(ProcessHandle::destroyForcibly);
        process.destroyForcibly();
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt(); // it has ended
    }
  }
}
