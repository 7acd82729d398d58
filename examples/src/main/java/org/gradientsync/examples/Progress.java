package org.gradientsync.examples;

import java.io.PrintWriter;
import java.time.Duration;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;

/**
 * Tells somebody who has waited two seconds what the program is doing, and again from time to time.
 * It has its own thread so that it speaks during one long call, too.
 */
final class Progress implements AutoCloseable {
  private static final Duration PATIENCE = Duration.ofSeconds(2);

  /** After the first line nobody doubts that the program runs: the next ones come more slowly. */
  private static final int PAUSES = 5;

  private final PrintWriter err;
  private final String program;
  private final long start = System.nanoTime();
  private final ScheduledExecutorService timer;
  private volatile String stage;

  Progress(PrintWriter err, String program) {
    this(err, program, PATIENCE);
  }

  Progress(PrintWriter err, String program, Duration patience) {
    this.err = err;
    this.program = program;
    timer =
        Executors.newSingleThreadScheduledExecutor(
            task -> {
              Thread thread = new Thread(task, "progress");
              thread.setDaemon(true);
              return thread;
            });
    timer.scheduleWithFixedDelay(
        this::tell, patience.toMillis(), PAUSES * patience.toMillis(), TimeUnit.MILLISECONDS);
  }

  /**
   * Notes what is being done from now on. A rank that never does stays silent.
   *
   * @param doing for example {@code averaging}
   */
  void stage(String doing) {
    stage = doing;
  }

  private void tell() {
    String doing = stage;
    if (doing != null) {
      long seconds = TimeUnit.NANOSECONDS.toSeconds(System.nanoTime() - start);
      err.println(program + ": " + doing + ", " + seconds + " s so far");
    }
  }

  @Override
  public void close() {
    timer.shutdownNow();
  }
}
