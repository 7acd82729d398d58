package org.gradientsync.tools.program;

import java.io.PrintWriter;
import java.time.Duration;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import picocli.CommandLine;

/**
 * Prints what the program is doing if it takes longer than two seconds, and again from time to
 * time. It uses its own thread, so that it also prints during one long call.
 */
public final class Progress implements AutoCloseable {
  private static final Duration TIMEOUTS = Duration.ofSeconds(2);

  /** After the first line users know that the program runs, so the next ones come less often. */
  private static final int PAUSES = 5;

  private static final int BAR = 30;
  private static final String END_OF_LINE = "\u001b[K"; // erases the rest of a longer line

  private final PrintWriter err;
  private final String program;
  private final boolean terminal;
  private final Duration timeouts;
  private final long start = System.nanoTime();
  private final ScheduledExecutorService timer;
  private volatile String stage;
  private volatile long since; // nanoTime of the last step, or 0 outside of steps
  private boolean barIsShown;

  public Progress(PrintWriter err, String program) {
    this(err, program, TIMEOUTS, CommandLine.Help.Ansi.AUTO.enabled());
  }

  public Progress(PrintWriter err, String program, Duration timeouts, boolean terminal) {
    this.err = err;
    this.program = program;
    this.terminal = terminal;
    this.timeouts = timeouts;
    timer =
        Executors.newSingleThreadScheduledExecutor(
            task -> {
              Thread thread = new Thread(task, "progress");
              thread.setDaemon(true);
              return thread;
            });
    timer.scheduleWithFixedDelay(
        this::tell, timeouts.toMillis(), PAUSES * timeouts.toMillis(), TimeUnit.MILLISECONDS);
  }

  /** Sets the current stage. A rank that never calls this stays silent. */
  public void stage(String doing) {
    since = 0;
    stage = doing;
  }

  /**
   * Shows the progress: on a terminal as a bar that is redrawn in place, otherwise in the lines
   * printed from time to time. Further figures are for example {@code loss 0.5}.
   */
  public void bar(long done, long all, String figures) {
    String numbers = "step " + done + " of " + all + ", " + figures;
    if (!terminal) {
      since = System.nanoTime();
      stage = numbers;
      return;
    }
    stage = null;
    int filled = (int) (BAR * done / all);
    String bar = "=".repeat(filled) + " ".repeat(BAR - filled);
    err.print("\r[" + bar + "] " + numbers + END_OF_LINE);
    err.flush();
    barIsShown = true;
  }

  private void tell() {
    String doing = stage;
    if (doing != null) {
      long step = since; // read once, because the program changes it meanwhile
      long now = System.nanoTime();
      long still = step == 0 ? 0 : now - step;
      err.println(
          program
              + ": "
              + doing
              + (still > timeouts.toNanos() ? ", " + seconds(still) + " s ago" : "")
              + ", "
              + seconds(now - start)
              + " s so far");
    }
  }

  private static long seconds(long nanos) {
    return TimeUnit.NANOSECONDS.toSeconds(nanos);
  }

  @Override
  public void close() {
    if (barIsShown) {
      err.print("\r" + END_OF_LINE);
      err.flush();
    }
    timer.shutdownNow();
  }
}
