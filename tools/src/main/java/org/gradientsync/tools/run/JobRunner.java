package org.gradientsync.tools.run;

import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.gradientsync.core.backend.Signals;

/** Runs jobs, one at a time. If this process is ended, the job is, too. */
final class JobRunner {
  /** The signals that ranks get, too: they otherwise end or crash a JVM. */
  static final List<String> FORWARDED = List.of("USR1", "USR2");

  /** A scheduler signals the processes of a job one by one, and the launcher may end first. */
  private static final long SIGNALS_APART_SECONDS = 1;

  private final CountDownLatch ended = new CountDownLatch(1);
  private volatile Job job;

  JobRunner() {
    Runtime.getRuntime().addShutdownHook(new Thread(this::end, "end"));
    try {
      for (String name : FORWARDED) {
        Signals.handle(name, () -> forward(name));
      }
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException("signals cannot be handled: " + e, e);
    }
  }

  /** Returns the job's exit code, or that of Ctrl-C if this process is being ended. */
  int run(Job next) throws InterruptedException {
    job = next;
    int code = isEnded() ? ExitCode.INTERRUPTED : next.run();
    boolean unwanted =
        ExitCode.tellsOfLostRank(code)
            ? ended.await(SIGNALS_APART_SECONDS, TimeUnit.SECONDS)
            : isEnded();
    return unwanted ? ExitCode.INTERRUPTED : code; // nobody wants it again
  }

  private boolean isEnded() {
    return ended.getCount() == 0;
  }

  void forward(String signal) {
    if (job != null) {
      job.forward(signal);
    }
  }

  private void end() {
    ended.countDown();
    if (job != null) {
      job.end();
    }
  }
}
