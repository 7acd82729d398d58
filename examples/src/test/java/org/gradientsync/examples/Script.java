package org.gradientsync.examples;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Assertions;
import org.junit.jupiter.api.Assumptions;

/** Runs the launch scripts as a user does: from any folder, alone or under mpirun. */
public final class Script {
  public static final Path BIN = Path.of(System.getProperty("basedir", ""), "bin").toAbsolutePath();

  private static final long TIMEOUT_SECONDS = 180;

  private final List<String> command = new ArrayList<>();
  private final Map<String, String> environment;
  private final ProcessBuilder builder = new ProcessBuilder();

  private Script() {
    environment = builder.environment();
    for (String name : List.of("JAVA_OPTS", "JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS")) {
      environment.remove(name); // the caller of the tests may have set them
    }
    environment.put("JAVA_HOME", System.getProperty("java.home"));
    // The programs are too short for C2, and a tenth of a start is the verifier's.
    environment.put(
        "JAVA_OPTS",
        "-XX:TieredStopAtLevel=1 -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote");
    // mpirun refuses to run as root unless told twice; a container has no other user.
    environment.put("OMPI_ALLOW_RUN_AS_ROOT", "1");
    environment.put("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
  }

  /** Returns a program to run on its own, by its path. */
  public static Script alone(Path program) {
    Script script = new Script();
    script.command.add(program.toString());
    return script;
  }

  /**
   * Returns a program to run under mpirun. Skips the test if there is none, unless mpirun is
   * required.
   */
  public static Script underMpirun(int ranks, String program) {
    requireMpirun();
    Script script = new Script();
    script.command.addAll(List.of("mpirun", "--oversubscribe", "-np", Integer.toString(ranks)));
    script.command.add(BIN.resolve(program).toString());
    return script;
  }

  public Script set(String variable, String value) {
    environment.put(variable, value);
    return this;
  }

  /**
   * Runs to the end.
   *
   * @param folder the working folder, which also keeps the output
   */
  public Run run(Path folder, String... args) throws IOException, InterruptedException {
    command.addAll(Arrays.asList(args));
    // Use files: a process stops when it fills a pipe that nobody reads.
    File out = Files.createTempFile(folder, "out", ".txt").toFile();
    File err = Files.createTempFile(folder, "err", ".txt").toFile();
    Process process =
        builder
            .command(command)
            .directory(folder.toFile())
            .redirectOutput(out)
            .redirectError(err)
            .start();
    boolean ended = process.waitFor(TIMEOUT_SECONDS, TimeUnit.SECONDS);
    if (!ended) {
      process.destroy(); // mpirun ends its ranks on SIGTERM, but not when it is killed
      if (!process.waitFor(10, TimeUnit.SECONDS)) {
        process.destroyForcibly();
      }
    }
    Run run =
        new Run(
            ended ? process.exitValue() : -1,
            Files.readString(out.toPath()),
            Files.readString(err.toPath()));
    Assertions.assertTrue(ended, () -> "did not end: " + command + "\n" + run);
    return run;
  }

  static void requireMpirun() {
    boolean found =
        Arrays.stream(System.getenv().getOrDefault("PATH", "").split(File.pathSeparator))
            .anyMatch(folder -> Files.isExecutable(Path.of(folder, "mpirun")));
    if (found) {
      return;
    }
    String reason = "mpirun is not on the PATH: nothing is run under it";
    if ("1".equals(System.getenv("GRADIENTSYNC_REQUIRE_MPI"))) {
      Assertions.fail(reason + ", but GRADIENTSYNC_REQUIRE_MPI=1");
    }
    System.out.println("skipped: " + reason);
    Assumptions.abort(reason);
  }
}
