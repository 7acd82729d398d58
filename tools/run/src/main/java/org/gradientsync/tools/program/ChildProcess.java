package org.gradientsync.tools.program;

import java.io.File;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/** A process for a short question, or for work that may crash or hang. */
public final class ChildProcess {
  private static final Duration ASKED = Duration.ofSeconds(10);
  private static final String LIBRARIES = "-Djava.library.path=";

  private final List<String> command;
  private final ProcessBuilder builder;

  private ChildProcess(List<String> command) {
    this.command = new ArrayList<>(command);
    builder = new ProcessBuilder();
  }

  /**
   * The end of a process.
   *
   * @param failure one line, or empty if it ended with code 0
   * @param output the process's output
   */
  public record Result(String failure, String output) {
    public boolean isGood() {
      return failure.isEmpty();
    }

    /** Returns the rest of the first line with this start, or the empty string. */
    public String after(String start) {
      return output
          .lines()
          .filter(line -> line.startsWith(start))
          .map(line -> line.substring(start.length()).strip())
          .findFirst()
          .orElse("");
    }
  }

  /** Creates a process for any program. */
  public static ChildProcess command(String... command) {
    return new ChildProcess(List.of(command));
  }

  /** Runs a program that says something about itself. */
  public static Result ask(String... command) {
    return command(command).run(ASKED);
  }

  /** Creates a process for a class of this class path, in a small JVM that starts quickly. */
  public static ChildProcess java(String main, String... args) {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.add("-XX:TieredStopAtLevel=1"); // set no collector, as JAVA_TOOL_OPTIONS may name one
    if (Runtime.version().feature() >= 24) {
      command.add("--enable-native-access=ALL-UNNAMED");
    }
    for (String option : ManagementFactory.getRuntimeMXBean().getInputArguments()) {
      if (option.startsWith(LIBRARIES)
          || option.startsWith("-Djna.")
          || option.startsWith("-Dgradientsync.")) {
        command.add(option);
      }
    }
    command.addAll(List.of("-cp", System.getProperty("java.class.path"), main));
    command.addAll(List.of(args));
    return new ChildProcess(command);
  }

  /** Sets a system property of the JVM. */
  public ChildProcess property(String name, Object value) {
    command.add(1, "-D" + name + "=" + value);
    return this;
  }

  /** Returns the process's environment, initially a copy of this one's. */
  public Map<String, String> environment() {
    return builder.environment();
  }

  /** Makes the JVM search one more folder for libraries, before the others. */
  public ChildProcess libraries(String folder) {
    if (!folder.isEmpty()) {
      environment()
          .merge("LD_LIBRARY_PATH", folder, (before, first) -> first + File.pathSeparator + before);
    }
    return this;
  }

  /** Runs to the end or the limit. Throws nothing. */
  public Result run(Duration limit) {
    Path folder = null;
    Process process = null;
    try {
      folder = Scratch.open();
      Path output = folder.resolve("output");
      // Natives are unpacked to the temporary folder, so a separate one avoids conflicts.
      if (command.get(0).endsWith("java")) {
        property("java.io.tmpdir", folder);
      }
      process =
          builder
              .command(command)
              .redirectErrorStream(true)
              .redirectInput(ProcessBuilder.Redirect.from(new File("/dev/null")))
              .redirectOutput(output.toFile())
              .start();
      boolean ended = process.waitFor(Math.max(1, limit.toMillis()), TimeUnit.MILLISECONDS);
      String failure = "";
      if (!ended) {
        kill(process);
        failure = "a trial process did not end within " + limit.toSeconds() + " s";
      }
      String text = new String(Files.readAllBytes(output), StandardCharsets.UTF_8);
      if (ended && process.exitValue() != 0) {
        failure = "a trial process ended with code " + process.exitValue() + ": " + meaningOf(text);
      }
      return new Result(failure, text);
    } catch (IOException e) {
      String what = folder == null ? "" : "a trial process cannot be started: ";
      return new Result(what + e.getMessage(), "");
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      kill(process);
      return new Result("interrupted during the trial", "");
    } finally {
      Scratch.close(folder);
    }
  }

  /** Kills a process and its descendants. */
  private static void kill(Process process) {
    if (process != null) {
      process.descendants().forEach(ProcessHandle::destroyForcibly);
      process.destroyForcibly();
    }
  }

  /** Kills all trial processes. */
  public static void killAll() {
    ProcessHandle.current().descendants().forEach(ProcessHandle::destroyForcibly);
  }

  /**
   * Returns the most telling line of an output: a crash's signal, an exception, the start of Open
   * MPI's text between dashes, or the last line with content.
   */
  public static String meaningOf(String output) {
    List<String> lines = output.lines().map(String::strip).toList();
    for (String line : lines) {
      if (line.matches("#\\s+SIG.*")) {
        return line.substring(1).strip();
      } else if (line.matches("(Exception in thread .*|[\\w.]+(Error|Exception): .*)")) {
        return line.replaceFirst("^Exception in thread \"[^\"]*\" ", "");
      }
    }
    int dashes = 0;
    while (dashes < lines.size() && !lines.get(dashes).matches("-{20,}")) {
      dashes++;
    }
    if (dashes + 1 < lines.size()) {
      List<String> paragraph =
          lines.subList(dashes + 1, lines.size()).stream()
              .takeWhile(line -> !line.isEmpty() && !line.matches("-{20,}"))
              .toList();
      return String.join(" ", paragraph);
    }
    return lines.stream()
        .filter(line -> !line.isEmpty() && !line.startsWith("#") && !line.startsWith("at "))
        .reduce((first, second) -> second)
        .orElse("(no output)");
  }
}
