package org.gradientsync.core.sync;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.gradientsync.GradientSync;
import org.gradientsync.UnavailableException;
import org.gradientsync.core.backend.Signals;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Asks this process's syncs to stop when it gets a signal: SIGTERM, which ends a process, or
 * SIGUSR1, which launchers pass on to their ranks. The second signal does what it did before, so it
 * ends the process.
 */
final class StopSignals {
  private static final Logger log = LoggerFactory.getLogger(GradientSync.class);
  private static final List<String> NAMES = List.of("TERM", "USR1");
  private static final List<Runnable> stops = new ArrayList<>(); // guarded by the class
  private static final Map<String, Object> before = new HashMap<>(); // the handlers, likewise

  private StopSignals() {}

  /**
   * Calls a method at the next signal, on a thread of the JVM.
   *
   * @throws UnavailableException if this JVM cannot handle signals
   */
  static synchronized void add(Runnable stop) {
    if (before.isEmpty()) {
      for (String name : NAMES) {
        try {
          before.put(name, Signals.handle(name, () -> received(name)));
        } catch (ReflectiveOperationException e) {
          restore();
          Throwable cause = e.getCause() == null ? e : e.getCause();
          throw new UnavailableException(
              "cannot stop on a signal: signal=SIG"
                  + name
                  + ": "
                  + cause.getMessage()
                  + "; start java without -Xrs, or build without stopOnSignal",
              e);
        }
      }
    }
    stops.add(stop);
  }

  /** Calls a method in place of an earlier one. After the first signal the next one still ends. */
  static synchronized void replace(Runnable earlier, Runnable stop) {
    if (stops.remove(earlier)) {
      stops.add(stop);
    } else {
      add(stop);
    }
  }

  /** Does not call a method any more. */
  static synchronized void remove(Runnable stop) {
    if (stops.remove(stop) && stops.isEmpty()) {
      restore();
    }
  }

  private static synchronized void received(String name) {
    log.info(
        "SIG{}: the ranks stop after a step, or this one leaves an elastic training; the next signal"
            + " ends this process at once",
        name);
    restore();
    stops.forEach(Runnable::run);
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
