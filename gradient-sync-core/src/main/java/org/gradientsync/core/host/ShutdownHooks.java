package org.gradientsync.core.host;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.gradientsync.core.backend.Processes;

/**
 * The program's own shutdown hooks, for which the JVM has no list. After a signal they are the
 * threads that have started since the thread that handles it.
 */
public final class ShutdownHooks {
  private static final String OWN = "gradient-sync-";
  private static final int NAME_BYTES = 15; // Linux cuts off the names of threads
  private static final long START_NANOS = 1_000_000_000;

  private ShutdownHooks() {}

  /**
   * {@return the hooks of the program, not this library's, that run after SIGTERM, SIGINT or
   * SIGHUP; empty if something else ends the process, or where /proc does not show when threads
   * have started} Called in a hook of this library; waits until the JVM has started all hooks.
   */
  public static List<Thread> ofProgram() {
    Thread handler =
        Thread.getAllStackTraces().entrySet().stream()
            .filter(e -> has(e.getValue(), "java.lang.Terminator"))
            .map(Map.Entry::getKey)
            .findFirst()
            .orElse(null);
    if (handler == null) {
      return List.of();
    }
    long begun = System.nanoTime();
    while (!has(handler.getStackTrace(), Thread.class.getName() + ".join")
        && System.nanoTime() - begun < START_NANOS) {
      Thread.yield(); // it starts all of them, and then joins one after the other
    }
    Map<String, Long> started = Processes.threadsStarted();
    long signal = started.getOrDefault(bytes(handler), Long.MAX_VALUE);
    return Thread.getAllStackTraces().keySet().stream()
        .filter(thread -> thread != handler && thread != Thread.currentThread())
        .filter(thread -> isOfProgram(thread))
        .filter(thread -> started.getOrDefault(bytes(thread), -1L) >= signal)
        .toList();
  }

  private static boolean has(StackTraceElement[] frames, String start) {
    return Arrays.stream(frames)
        .anyMatch(frame -> (frame.getClassName() + "." + frame.getMethodName()).startsWith(start));
  }

  private static boolean isOfProgram(Thread thread) {
    // The JVM's own threads are in its group, which has no parent, or of its classes.
    return !thread.getName().startsWith(OWN)
        && !thread.getClass().getName().startsWith("jdk.")
        && Optional.ofNullable(thread.getThreadGroup()).map(ThreadGroup::getParent).isPresent();
  }

  private static String bytes(Thread thread) {
    byte[] name = thread.getName().getBytes(StandardCharsets.UTF_8);
    return new String(name, 0, Math.min(name.length, NAME_BYTES), StandardCharsets.ISO_8859_1);
  }
}
