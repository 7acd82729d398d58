package org.gradientsync.tools.run;

/** Starts the ranks of a job once. {@link JobRunner} runs it. */
interface RankLaunch {
  /** How long ranks have when this process ends, for example to save. */
  long PATIENCE_SECONDS = 10;

  /** Starts the ranks, waits for their end, and returns the job's exit code. */
  int run() throws InterruptedException;

  /** Ends the ranks. {@link #run}, on another thread, then returns. */
  void end();

  /** Asks the ranks to end, by SIGTERM, and does not wait. Those that are lost are not replaced. */
  void terminate();

  /** Sends the ranks a signal, for example {@code USR1}. */
  void forward(String signal);
}
