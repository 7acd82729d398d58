package org.gradientsync.core.diagnosis;

import java.time.Instant;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.TreeSet;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Supplier;
import java.util.regex.Pattern;
import org.gradientsync.core.backend.ShortText;
import org.gradientsync.core.backend.ShownEnvironment;
import org.gradientsync.core.rendezvous.Calls;
import org.gradientsync.core.rendezvous.GroupParts;

/**
 * The report of one rank about a group: what it knows about a job that is stuck. Any thread may
 * ask; takes no lock.
 */
public final class RankReport {
  private static final Pattern PROPERTIES =
      Pattern.compile("os\\..*|java\\.(version|vendor|vm\\.name|vm\\.version|library\\.path)");

  private final GroupParts group;
  private final Supplier<String> waiting; // the rank and the call that this one waits for, or empty
  private final List<Supplier<List<String>>> states = new CopyOnWriteArrayList<>();

  public RankReport(GroupParts group, Supplier<String> waiting) {
    this.group = group;
    this.waiting = waiting;
  }

  public void add(Supplier<List<String>> state) {
    states.add(state);
  }

  /** The whole report. The reason for it is empty if another rank has requested it. */
  public List<String> of(String why) {
    List<String> lines = new ArrayList<>();
    lines.add(summary(why));
    lines.add("");
    lines.add("time: " + Instant.now());
    section(lines, "last calls, oldest first", group.calls().lines());
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

  /** The lines about this group in the report of another one. */
  public List<String> lines() {
    String waits = waiting.get();
    List<String> lines = new ArrayList<>();
    String now = waits.isEmpty() ? "waits for nobody" : waits;
    String heading =
        "communicator %s, rank %s of %s: %s"
            .formatted(group.key().context(), group.rank(), group.size(), now);
    section(lines, heading, group.calls().lines());
    return lines;
  }

  private String summary(String why) {
    Calls calls = group.calls();
    String waits = waiting.get();
    StringBuilder line = new StringBuilder(at(group.ranks().placeOf(group.rank())));
    if (!why.isEmpty()) {
      line.append(why).append(": ");
    }
    if (!waits.isEmpty()) {
      return line.append(waits + ", last finished " + calls.lastFinished()).toString();
    }
    if (calls.begun() == 0) {
      line.append("has made no call");
    } else {
      String now = calls.isRunning() ? "in " + calls.current() : "is in no call";
      double since = calls.sinceLast() / 1e9;
      line.append(String.format(Locale.ROOT, "%s since %.1f s", now, since));
      line.append(", last finished ").append(calls.lastFinished());
    }
    Thread caller = calls.caller();
    Thread thread =
        !calls.isRunning() && caller instanceof WorkerThread worker ? worker.requester() : caller;
    if (thread != null) {
      line.append(", thread ").append(quoted(thread)).append(at(thread));
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

  private static void section(List<String> lines, String heading, List<String> part) {
    lines.add("");
    lines.add(heading + ":");
    part.forEach(line -> lines.add("  " + line));
  }

  private static List<String> threads() {
    List<String> lines = new ArrayList<>();
    Thread.getAllStackTraces().entrySet().stream()
        .sorted(Comparator.comparing(entry -> entry.getKey().getName()))
        .forEach(
            entry -> {
              lines.add(quoted(entry.getKey()) + " " + entry.getKey().getState());
              for (StackTraceElement frame : entry.getValue()) {
                lines.add("    at " + frame);
              }
            });
    return lines;
  }

  static List<String> properties() {
    List<String> lines = new ArrayList<>();
    String version = RankReport.class.getPackage().getImplementationVersion();
    lines.add("gradient-sync=" + Objects.requireNonNullElse(version, "unpackaged"));
    for (String name : new TreeSet<>(System.getProperties().stringPropertyNames())) {
      if (PROPERTIES.matcher(name).matches()) {
        lines.add(name + "=" + System.getProperty(name));
      } else if (name.startsWith("gradientsync.")) {
        String value = ShownEnvironment.valueOf(System.getProperty(name));
        lines.add(name + "=" + (name.contains("secret") ? "(secret)" : value));
      }
    }
    Runtime runtime = Runtime.getRuntime();
    long used = runtime.totalMemory() - runtime.freeMemory() >> 20;
    String heap = ", heap=" + used + " MiB of " + (runtime.maxMemory() >> 20) + " MiB";
    lines.add("processors=" + runtime.availableProcessors() + heap);
    return lines;
  }

  /** Users send reports to others: see {@link ShownEnvironment}. */
  static List<String> environment(Map<String, String> variables) {
    return ShownEnvironment.of(variables).entrySet().stream().map(Map.Entry::toString).toList();
  }

  private static String quoted(Thread thread) {
    return '"' + ShortText.oneLine(thread.getName()) + '"';
  }
}
