package org.gradientsync.tools.run;

import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.gradientsync.core.backend.Signals;

/** Runs jobs, one at a time. If this process is ended, the job is, too. */
final class JobRunner {
  /** The signals that ranks get, too: they otherwise end or crash a JVM. */
  static final List<String> FORWARDED = List.of("USR1", "USR2");

  /** Ends ranks, which they may delay. */
  static final String TERM = "TERM";

  /** A scheduler signals the processes of a job one by one, and the launcher may end first. */
  private static final long SIGNALS_APART_SECONDS = 1;

  private final CountDownLatch ended = new CountDownLatch(1);
  private final Object first; // what SIGTERM does otherwise
  private volatile RankLaunch launch; // the last one
  private volatile boolean terminated;

  JobRunner() {
    Runtime.getRuntime().addShutdownHook(new Thread(this::end, "end"));
    try {
      for (String name : FORWARDED) {
        Signals.handle(name, () -> forward(name));
      }
      first = Signals.handle(TERM, this::terminate);
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException("signals cannot be handled: " + e, e);
    }
  }

  /**
   * Returns the job's exit code, or that of Ctrl-C if this process is being ended. After SIGTERM it
   * is the job's if all ranks have ended well.
   */
  int run(RankLaunch next) throws InterruptedException {
    launch = next;
    int code = isEnded() ? ExitCode.INTERRUPTED : next.run();
    boolean unwanted =
        ExitCode.tellsOfLostRank(code)
            ? ended.await(SIGNALS_APART_SECONDS, TimeUnit.SECONDS)
            : isEnded();
    boolean endedWell = terminated && code == 0;
    return unwanted && !endedWell ? ExitCode.INTERRUPTED : code; // nobody wants it again
  }

  /** Returns the exit code of this process after a job's. */
  int ownCode(int code) {
    return terminated && code == ExitCode.INTERRUPTED ? ExitCode.TERMINATED : code;
  }

  private boolean isEnded() {
    return ended.getCount() == 0;
  }

  /** Passes a signal on. */
  void forward(String signal) {
    if (launch != null) {
      launch.forward(signal);
    }
  }

  /**
   * Lets ranks that stop and save take their time. A second SIGTERM ends this process, but not one
   * within a second: {@code timeout} sends it to its child and to its process group.
   */
  void terminate() {
    synchronized (ended) {
      if (terminated) {
        return;
      }
      terminated = true;
    }
    ended.countDown();
    try {
      if (launch != null) {
        launch.terminate();
      }
      TimeUnit.SECONDS.sleep(SIGNALS_APART_SECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    } finally {
      restoreHandler();
    }
  }

  private void restoreHandler() {
    try {
      Signals.restore(TERM, first);
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException(e);
    }
  }

  private void end() {
    ended.countDown();
    if (launch != null) {
      launch.end();
    }
  }
}
