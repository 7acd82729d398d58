package org.gradientsync.mpi;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.gradientsync.test.contract.RankJvm;
import org.junit.jupiter.api.Assumptions;

/** Runs Java programs from the test class path under the real mpirun. */
final class Mpirun {
  /** The time after which a job counts as hanging, unless it is known to take longer. */
  static final long SECONDS = 240;

  /** The exit code and the output of a job. */
  record Result(int exitCode, String output) {
    /** Checks that the output contains a text, and returns this result. */
    Result expect(String text) {
      assertTrue(output.contains(text), () -> "no '" + text + "' in the output:\n" + output);
      return this;
    }
  }

  private Mpirun() {}

  /**
   * Skips the test if there is no mpirun. With GRADIENTSYNC_REQUIRE_MPI=1 the test fails instead.
   */
  static void require() {
    boolean found = false;
    for (String folder : System.getenv("PATH").split(File.pathSeparator)) {
      found |= Files.isExecutable(Path.of(folder, "mpirun"));
    }
    if (!found) {
      String reason = "SKIPPED: there is no mpirun on the PATH; script/bootstrap installs Open MPI";
      System.out.println(reason);
      assertTrue(!"1".equals(System.getenv("GRADIENTSYNC_REQUIRE_MPI")), reason);
      Assumptions.abort(reason);
    }
  }

  /** Runs a class on some ranks, and waits for the end. */
  static Result run(int ranks, List<String> jvmOptions, Class<?> main, String... arguments)
      throws IOException, InterruptedException {
    return run(ranks, SECONDS, Map.of(), jvmOptions, main, arguments);
  }

  /** Runs a class on some ranks, and waits for a limited time. */
  static Result run(
      int ranks,
      long seconds,
      Map<String, String> environment,
      List<String> jvmOptions,
      Class<?> main,
      String... arguments)
      throws IOException, InterruptedException {
    // If the program is named java, mpirun adds its own folders to the library and class path.
    return run(ranks, seconds, environment, List.of("env"), jvmOptions, main, arguments);
  }

  /** Runs a class on some ranks, each below a shell, so that mpirun does not see it end. */
  static Result runHidden(
      int ranks,
      Map<String, String> environment,
      List<String> jvmOptions,
      Class<?> main,
      String... arguments)
      throws IOException, InterruptedException {
    List<String> shell = List.of("sh", "-c", "\"$@\"; exec sleep " + SECONDS, "sh");
    return run(ranks, SECONDS, environment, shell, jvmOptions, main, arguments);
  }

  /** Runs a class on some ranks, whose parents never reap them. */
  static Result runUnreaped(int ranks, List<String> jvmOptions, Class<?> main, String... arguments)
      throws IOException, InterruptedException {
    List<String> shell = List.of("sh", "-c", "\"$@\" & exec sleep " + SECONDS, "sh");
    return run(ranks, SECONDS, Map.of(), shell, jvmOptions, main, arguments);
  }

  /**
   * Runs a class on some ranks, each in a PID namespace of its own, as in containers that share
   * /dev/shm. Messages use TCP: Open MPI's shared memory crashes there.
   */
  static Result runInPidNamespaces(
      int ranks, List<String> jvmOptions, Class<?> main, String... arguments)
      throws IOException, InterruptedException {
    Map<String, String> tcp =
        Map.of(
            "OMPI_MCA_pml", "ob1",
            "OMPI_MCA_btl", "self,tcp",
            "OMPI_MCA_btl_tcp_if_include", "lo");
    List<String> unshare =
        List.of(
            "unshare",
            "--map-root-user",
            "--mount",
            "--pid",
            "--fork",
            "--mount-proc",
            "--kill-child");
    return run(ranks, SECONDS, tcp, unshare, jvmOptions, main, arguments);
  }

  /** As above, each rank below a command. */
  static Result run(
      int ranks,
      long seconds,
      Map<String, String> environment,
      List<String> below,
      List<String> jvmOptions,
      Class<?> main,
      String... arguments)
      throws IOException, InterruptedException {
    return runBelow(List.of(), ranks, seconds, environment, below, jvmOptions, main, arguments);
  }

  /** Runs a class on some ranks with an mpirun that runs below another command. */
  static Result runBelow(
      List<String> outer,
      int ranks,
      long seconds,
      Map<String, String> environment,
      Class<?> main,
      String... arguments)
      throws IOException, InterruptedException {
    return runBelow(outer, ranks, seconds, environment, List.of("env"), List.of(), main, arguments);
  }

  private static Result runBelow(
      List<String> outer,
      int ranks,
      long seconds,
      Map<String, String> environment,
      List<String> below,
      List<String> jvmOptions,
      Class<?> main,
      String... arguments)
      throws IOException, InterruptedException {
    require();
    List<String> command = new ArrayList<>(outer);
    command.addAll(
        List.of("mpirun", "--oversubscribe", "--bind-to", "none", "-np", Integer.toString(ranks)));
    command.addAll(below);
    command.addAll(java(jvmOptions, main, arguments));
    return execute(command, environment, seconds);
  }

  /** The JVM options for a class path that has everything but mpi.jar. */
  static List<String> withoutMpiJar() {
    String path = System.getProperty("java.class.path");
    String without =
        Arrays.stream(path.split(File.pathSeparator))
            .filter(e -> !e.contains("mpi-java"))
            .collect(Collectors.joining(File.pathSeparator));
    assertTrue(!path.equals(without), path);
    return List.of("-cp", without);
  }

  /** Runs a class without mpirun. */
  static Result alone(List<String> jvmOptions, Class<?> main, String... arguments)
      throws IOException, InterruptedException {
    return execute(java(jvmOptions, main, arguments), Map.of(), SECONDS);
  }

  /** Runs a class below another command. */
  static Result below(
      List<String> command, List<String> jvmOptions, Class<?> main, String... arguments)
      throws IOException, InterruptedException {
    List<String> all = new ArrayList<>(command);
    all.addAll(java(jvmOptions, main, arguments));
    return execute(all, Map.of(), SECONDS);
  }

  static List<String> java(List<String> options, Class<?> main, String... arguments) {
    List<String> all = new ArrayList<>();
    all.add("-Djava.library.path=" + System.getProperty("java.library.path"));
    if (Runtime.version().feature() >= 24) {
      all.add("--enable-native-access=ALL-UNNAMED");
    }
    all.addAll(options); // these may have another class path, which then counts
    List<String> words = new ArrayList<>(List.of(main.getName()));
    words.addAll(List.of(arguments));
    return RankJvm.command(all, words.toArray(String[]::new));
  }

  static Result execute(List<String> command, Map<String, String> environment, long seconds)
      throws IOException, InterruptedException {
    Path output = Files.createTempFile("mpirun", ".log");
    try {
      ProcessBuilder builder =
          new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(output.toFile());
      builder.environment().putAll(environment);
      builder.environment().put("OMPI_ALLOW_RUN_AS_ROOT", "1");
      builder.environment().put("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
      builder.environment().put("UCX_ERROR_SIGNALS", ""); // HotSpot uses SIGSEGV itself
      Process process = builder.start();
      process.getOutputStream().close();
      boolean ended = process.waitFor(seconds, TimeUnit.SECONDS);
      if (!ended) {
        process.destroy(); // mpirun ends its ranks on SIGTERM, but not when it is killed
        if (!process.waitFor(10, TimeUnit.SECONDS)) {
          process.destroyForcibly();
        }
      }
      String text = Files.readString(output, StandardCharsets.UTF_8);
      assertTrue(ended, () -> "the job hangs: " + command + "\n" + text);
      return new Result(process.exitValue(), text);
    } finally {
      Files.delete(output);
    }
  }
}
