package org.gradientsync.core.diagnosis;

import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Supplier;
import org.gradientsync.core.backend.ShortText;
import org.gradientsync.core.backend.ShownEnvironment;
import org.gradientsync.core.rendezvous.Calls;

/** The report of one rank: what it knows about a job that is stuck. */
public final class RankReport {
  private static final Set<String> PROPERTIES =
      Set.of(
          "java.version",
          "java.vendor",
          "java.vm.name",
          "java.vm.version",
          "java.library.path",
          "os.name",
          "os.version",
          "os.arch");

  private RankReport() {}

  /**
   * The first line, which summarizes the report.
   *
   * @param place where the rank runs
   * @param why the reason for the report, or an empty text if another rank has requested it
   * @param waiting the rank and the call that it waits for, or an empty text
   * @param calls its calls
   * @param caller the thread that made the last call, or null
   */
  public static String summary(
      String place, String why, String waiting, Calls calls, Thread caller) {
    StringBuilder line = new StringBuilder(at(place));
    if (!why.isEmpty()) {
      line.append(why).append(": ");
    }
    if (!waiting.isEmpty()) {
      line.append(waiting).append(", last finished ").append(calls.lastFinished());
    } else {
      line.append(
          calls.isEmpty()
              ? "has made no call"
              : String.format(
                  Locale.ROOT,
                  "%s since %.1f s, last finished %s",
                  calls.isRunning() ? "in " + calls.current() : "is in no call",
                  calls.sinceLast() / 1e9,
                  calls.lastFinished()));
      Thread thread =
          !calls.isRunning() && caller instanceof WorkerThread worker ? worker.requester() : caller;
      if (thread != null) {
        line.append(", thread \"").append(nameOf(thread)).append('"').append(at(thread));
      }
    }
    return line.toString();
  }

  /** The prefix of a line about a rank at a place, which may be an empty text. */
  static String at(String place) {
    return place.isEmpty() ? "" : "(" + place + ") ";
  }

  /** The innermost frame outside the JDK: often the user's own code. */
  private static String at(Thread thread) {
    StackTraceElement[] frames = thread.getStackTrace();
    for (StackTraceElement frame : frames) {
      String module = frame.getModuleName();
      if (module == null || !module.startsWith("java.")) {
        return " at " + frame;
      }
    }
    return frames.length > 0 ? " at " + frames[0] : " has ended";
  }

  /** The whole report: the summary, recent calls, and the states of the device and others. */
  public static List<String> of(
      String summary, List<String> calls, List<Supplier<List<String>>> states) {
    List<String> lines = new ArrayList<>();
    lines.add(summary);
    lines.add("");
    lines.add("time: " + Instant.now());
    section(lines, "last calls, oldest first", calls);
    for (Supplier<List<String>> state : states) {
      try {
        lines.addAll(state.get());
      } catch (RuntimeException | LinkageError e) {
        lines.add("cannot be had: " + e); // an incomplete report is better than none
      }
    }
    section(lines, "threads", threads());
    section(lines, "versions and properties", properties());
    section(lines, "environment", environment(System.getenv()));
    return lines;
  }

  private static void section(List<String> lines, String heading, List<String> part) {
    lines.add("");
    lines.add(heading + ":");
    part.forEach(line -> lines.add("  " + line));
  }

  private static List<String> threads() {
    Map<String, List<String>> sorted = new TreeMap<>();
    Thread.getAllStackTraces()
        .forEach(
            (thread, frames) -> {
              List<String> lines = new ArrayList<>();
              lines.add('"' + nameOf(thread) + "\" " + thread.getState());
              for (StackTraceElement frame : frames) {
                lines.add("    at " + frame);
              }
              sorted.put(thread.getName() + " " + System.identityHashCode(thread), lines);
            });
    List<String> all = new ArrayList<>();
    sorted.values().forEach(all::addAll);
    return all;
  }

  static List<String> properties() {
    List<String> lines = new ArrayList<>();
    lines.add("gradient-sync=" + version());
    for (String name : new TreeSet<>(System.getProperties().stringPropertyNames())) {
      if (PROPERTIES.contains(name)) {
        lines.add(name + "=" + System.getProperty(name));
      } else if (name.startsWith("gradientsync.")) {
        String value = ShownEnvironment.valueOf(System.getProperty(name));
        lines.add(name + "=" + (name.contains("secret") ? "(secret)" : value));
      }
    }
    Runtime runtime = Runtime.getRuntime();
    lines.add(
        String.format(
            Locale.ROOT,
            "processors=%d, heap=%d MiB of %d MiB",
            runtime.availableProcessors(),
            runtime.totalMemory() - runtime.freeMemory() >> 20,
            runtime.maxMemory() >> 20));
    return lines;
  }

  /** Users send reports to others: see {@link ShownEnvironment}. */
  static List<String> environment(Map<String, String> variables) {
    return ShownEnvironment.of(variables).entrySet().stream().map(Map.Entry::toString).toList();
  }

  /** The version in the jar's manifest. */
  private static String version() {
    String version = RankReport.class.getPackage().getImplementationVersion();
    return version == null ? "unpackaged" : version;
  }

  private static String nameOf(Thread thread) {
    return ShortText.oneLine(thread.getName());
  }
}
