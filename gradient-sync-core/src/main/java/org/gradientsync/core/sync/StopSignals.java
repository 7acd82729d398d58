package org.gradientsync.core.sync;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.gradientsync.GradientSync;
import org.gradientsync.UnavailableException;
import org.gradientsync.core.backend.Signals;
import org.gradientsync.core.host.SharedFiles;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Asks this process's syncs to stop when it gets a signal: SIGTERM, which ends a process, or
 * SIGUSR1, which launchers pass on to their ranks. The second signal ends the process without its
 * shutdown hooks, of which {@link org.gradientsync.core.launch} has one that waits for the other
 * ranks; where no sync is open any more, it does what it did before. The same signal again within a
 * second is no second one: a scheduler may signal both a launcher, which passes it on, and its
 * ranks, and {@code timeout} sends it twice. Nor is one that comes soon after this rank has learned
 * from another one that all stop: a scheduler signals all ranks, and this one may have been slower.
 */
final class StopSignals {
  private static final Logger log = LoggerFactory.getLogger(GradientSync.class);
  private static final List<String> NAMES = List.of("TERM", "USR1");
  private static final long SAME_NANOS = 1_000_000_000;
  private static final long SLOWER_NANOS = 10_000_000_000L;

  // All guarded by the class.
  private static final List<Runnable> stops = new ArrayList<>();
  private static final Map<String, Object> before = new HashMap<>(); // the handlers
  private static String first; // null until there is a signal
  private static long firstNanos;
  private static boolean expected; // a signal that another rank has had
  private static long expectedNanos;

  private StopSignals() {}

  /**
   * Calls a method at the next signal, on a thread of the JVM. It does not end the process, even if
   * there was one before.
   *
   * @throws UnavailableException if this JVM cannot handle signals
   */
  static synchronized void add(Runnable stop) {
    handle();
    first = null;
    expected = false;
    stops.add(stop);
  }

  /** Calls a method in place of an earlier one. After the first signal the next one still ends. */
  static synchronized void replace(Runnable earlier, Runnable stop) {
    handle();
    stops.remove(earlier);
    stops.add(stop);
  }

  /** All ranks stop: the signal that another one has had may still come. */
  static synchronized void expect() {
    if (first == null && !expected && !before.isEmpty()) {
      expected = true;
      expectedNanos = System.nanoTime();
    }
  }

  private static void handle() {
    for (String name : before.isEmpty() ? NAMES : List.<String>of()) {
      try {
        before.put(name, Signals.handle(name, () -> received(name)));
      } catch (ReflectiveOperationException e) {
        restore();
        Throwable cause = e.getCause() == null ? e : e.getCause();
        throw new UnavailableException(
            ("cannot stop on a signal: signal=SIG%s: %s;"
                    + " start java without -Xrs, or build without stopOnSignal")
                .formatted(name, cause.getMessage()),
            e);
      }
    }
  }

  /** Does not call a method any more. After the first signal the next one still ends. */
  static synchronized void remove(Runnable stop) {
    if (stops.remove(stop) && stops.isEmpty() && first == null && !expected) {
      restore();
    }
  }

  /** For tests: whether the next signal ends this process. */
  static synchronized boolean isSecondNext() {
    return first != null;
  }

  private static void received(String name) {
    synchronized (StopSignals.class) {
      if (first != null) {
        if (!name.equals(first) || System.nanoTime() - firstNanos > SAME_NANOS) {
          end(name);
        }
        return;
      }
      boolean isLate = expected && System.nanoTime() - expectedNanos < SLOWER_NANOS;
      if (stops.isEmpty() && !isLate) { // the last sync has closed meanwhile
        end(name);
        return;
      }
      first = name;
      firstNanos = System.nanoTime();
      if (stops.isEmpty()) {
        return; // this rank has stopped already
      }
      stops.forEach(Runnable::run);
    }
    log.info(
        "SIG{}: the ranks stop after a step, or this one leaves an elastic training; the next"
            + " signal ends this process at once",
        name);
  }

  private static void end(String name) {
    try {
      if (stops.isEmpty() && !isShuttingDown()) { // the program does something else
        restore();
        Signals.raise(name);
        return;
      }
      int code = 128 + Signals.number(name); // as shells count
      try {
        SharedFiles.deleteAll();
      } finally {
        Runtime.getRuntime().halt(code);
      }
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException("no such signal: SIG" + name, e);
    }
  }

  /** Whether this process is ending. A rank then waits for the others, without a sync. */
  private static boolean isShuttingDown() {
    Thread hook = new Thread();
    try {
      Runtime.getRuntime().addShutdownHook(hook);
      Runtime.getRuntime().removeShutdownHook(hook);
      return false;
    } catch (IllegalStateException e) {
      return true;
    }
  }

  private static void restore() {
    before.forEach(
        (name, handler) -> {
          try {
            Signals.restore(name, handler);
          } catch (ReflectiveOperationException e) {
            throw new IllegalStateException("cannot restore a handler: signal=SIG" + name, e);
          }
        });
    before.clear();
  }
}
