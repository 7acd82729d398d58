package org.gradientsync.collective;

import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Supplier;
import java.util.regex.Pattern;

/** What one rank knows when it is asked why a job does not go on. */
final class RankReport {
  /** What in the environment matters here. */
  private static final List<String> VARIABLES =
      List.of("OMPI_", "PMIX_", "UCX_", "CUDA_", "NVIDIA_", "SLURM_", "LD_LIBRARY_PATH");

  /** Reports are sent to others. */
  private static final Pattern SECRET =
      Pattern.compile("JWT|TOKEN|SECRET|PASS|KEY|CRED|AUTH|PRECONDITION_TRANSPORTS");

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
   * Collects.
   *
   * @param summary the first line
   * @param calls the group's last calls
   * @param states what the device, the reducer and others say of themselves
   */
  static List<String> of(String summary, List<String> calls, List<Supplier<List<String>>> states) {
    List<String> lines = new ArrayList<>();
    lines.add(summary);
    lines.add("");
    lines.add("time: " + Instant.now());
    section(lines, "last calls, oldest first", calls);
    for (Supplier<List<String>> state : states) {
      try {
        lines.addAll(state.get());
      } catch (RuntimeException | LinkageError e) {
        lines.add("cannot be had: " + e); // a report is better with a gap than not written
      }
    }
    section(lines, "threads", threads());
    section(lines, "versions and properties", properties());
    section(lines, "environment", environment());
    return lines;
  }

  /** Adds a part with a heading. */
  static void section(List<String> lines, String heading, List<String> part) {
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
              lines.add('"' + thread.getName() + "\" " + thread.getState());
              for (StackTraceElement frame : frames) {
                lines.add("    at " + frame);
              }
              sorted.put(thread.getName() + " " + System.identityHashCode(thread), lines);
            });
    List<String> all = new ArrayList<>();
    sorted.values().forEach(all::addAll);
    return all;
  }

  private static List<String> properties() {
    List<String> lines = new ArrayList<>();
    Package own = RankReport.class.getPackage();
    lines.add("gradient-sync=" + own.getImplementationVersion());
    for (String name : new TreeSet<>(System.getProperties().stringPropertyNames())) {
      if (name.startsWith("gradientsync.") || PROPERTIES.contains(name)) {
        lines.add(name + "=" + System.getProperty(name));
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

  private static List<String> environment() {
    List<String> lines = new ArrayList<>();
    new TreeMap<>(System.getenv())
        .forEach(
            (name, value) -> {
              boolean secret = SECRET.matcher(name.toUpperCase(Locale.ROOT)).find();
              if (!secret && VARIABLES.stream().anyMatch(name::startsWith)) {
                lines.add(name + "=" + value);
              }
            });
    return lines;
  }
}
