package org.gradientsync.tools.run;

import java.io.PrintWriter;

/** Starts a job again when a rank was lost. A program that fails by itself is not started again. */
final class Restarts {
  private final int most;
  private final PrintWriter err;

  /**
   * @param most how often the job may be started again
   */
  Restarts(int most, PrintWriter err) {
    this.most = most;
    this.err = err;
  }

  /** One attempt. */
  interface Attempt {
    int run() throws InterruptedException;
  }

  /**
   * Runs a job until it ends well, fails by itself, or has been started as often as it may be.
   * Returns the exit code of the last attempt.
   */
  int run(Attempt job) throws InterruptedException {
    int code = job.run();
    for (int restart = 1; ExitCode.tellsOfLostRank(code); restart++) {
      String lost = "gradient-sync: a rank was lost (" + ExitCode.meaning(code) + "); ";
      if (restart > most) {
        say(
            lost
                + (most == 0
                    ? "with --restarts N the job would be started again"
                    : "the job is not started again, as it has been " + (most + 1) + " times"));
        return code;
      }
      say(lost + "attempt " + (restart + 1) + " of " + (most + 1) + " starts");
      code = job.run();
    }
    return code;
  }

  private void say(String line) {
    err.println(line);
    err.flush();
  }
}
