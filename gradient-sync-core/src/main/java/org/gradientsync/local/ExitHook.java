package org.gradientsync.local;

import java.util.Arrays;
import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Warns if a rank calls {@code System.exit} while other ranks run. This ends all ranks, and with
 * exit code 0 it looks as if all had succeeded.
 */
final class ExitHook {
  private static final Logger log = LoggerFactory.getLogger(LocalRanks.class);

  private final Thread hook;

  /**
   * Registers the hook.
   *
   * @param ranks the ranks' threads
   */
  ExitHook(Thread[] ranks) {
    hook = new Thread(() -> warn(ranks), "gradient-sync-local-end");
    try {
      Runtime.getRuntime().addShutdownHook(hook);
    } catch (IllegalStateException e) {
      log.debug("the program is ending", e);
    }
  }

  private static void warn(Thread[] ranks) {
    for (Thread rank : ranks) {
      List<String> others =
          Arrays.stream(ranks).filter(r -> r != rank && r.isAlive()).map(Thread::getName).toList();
      if (!others.isEmpty() && isExiting(rank)) {
        // not through the log, which may have shut down already
        System.err.println(
            ("gradient-sync: %s has called System.exit, which ends the program and so these, too:"
                    + " %s; throw an exception instead, or return")
                .formatted(rank.getName(), others));
      }
    }
  }

  private static boolean isExiting(Thread thread) {
    return Arrays.stream(thread.getStackTrace())
        .anyMatch(
            frame ->
                frame.getClassName().equals(Runtime.class.getName())
                    && frame.getMethodName().equals("exit"));
  }

  void remove() {
    try {
      Runtime.getRuntime().removeShutdownHook(hook);
    } catch (IllegalStateException e) {
      log.debug("the program is ending", e);
    }
  }
}
