package org.gradientsync.tools.run;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.spi.ToolProvider;
import org.gradientsync.tools.GradientSyncCommand;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Runs jobs with the launchers that are installed here. */
class RunIT {
  private static final Path SCRIPT =
      Path.of(System.getProperty("basedir", ""), "bin/gradient-sync").toAbsolutePath();
  private static final Path SLURM =
      Path.of("../gradient-sync-mpi/src/test/resources/org/gradientsync/mpi/slurm.sh")
          .toAbsolutePath();
  private static final int SECONDS = 120;

  @TempDir Path folder;

  @Test
  void openMpi() throws Exception {
    InstalledLauncher.require("mpirun");
    aRankFails(List.of(), List.of("--oversubscribe"));
  }

  @Test
  @Tag("mpich")
  void mpich() throws Exception {
    InstalledLauncher.require("mpiexec.hydra");
    aRankFails(List.of(), List.of("--launcher", "mpiexec.hydra"));
  }

  @Test
  @Tag("slurm")
  void slurm() throws Exception {
    InstalledLauncher.require("srun");
    List<String> below = List.of("sh", SLURM.toString(), folder.resolve("slurm").toString());
    aRankFails(below, List.of("--launcher", "srun", "--oversubscribe"));
  }

  /** A rank that fails by itself ends the job with its code, and does not make it start again. */
  private void aRankFails(List<String> below, List<String> options) throws Exception {
    List<String> all = new ArrayList<>(options);
    all.addAll(List.of("--restarts=3", "-x", "OF_THE_USER=is here"));
    Process process = start(below, all, "fail");
    String text = end(process);
    List<String> out = Files.readAllLines(folder.resolve("out"));
    assertEquals(7, process.exitValue(), text);
    for (int rank = 0; rank < 2; rank++) {
      String prefix = "[" + rank + "] ";
      String says = prefix + "says mpi on " + RankProgram.cpus() + " CPUs, [] [is here]";
      assertTrue(out.contains(prefix + "rank " + rank + " of 2 averages 0.5"), text);
      assertTrue(out.contains(says), text);
      assertTrue(errors().contains(prefix + "complains: fail\n"), text);
    }
    assertTrue(!errors().contains("attempt"), text);
  }

  @Test
  void aLauncherThatGivesEachProcessAWorldOfOne() throws Exception {
    Path launcher =
        fakeMpirun(
            "while [ \"$1\" != env ]; do shift; done;"
                + " \"$@\" & \"$@\"; code=$?; wait; exit $code");
    Process process = start(List.of(), List.of("--launcher", launcher.toString()), "nothing");
    String text = end(process);
    assertEquals(1, process.exitValue(), text);
    String alone = "gradient-sync run started 2 processes, but this one finds itself alone: ";
    assertEquals(3, text.split(alone, -1).length, text);
  }

  @Test
  void threads() throws Exception {
    Process process = start(List.of(), List.of("--threads"), "nothing");
    String text = end(process);
    assertEquals(0, process.exitValue(), text);
    assertTrue(text.contains("says local on " + RankProgram.cpus()), text);
    assertTrue(text.contains("rank 1 of 2 averages 0.5") || text.contains("rank 1rank 0"), text);
  }

  @ParameterizedTest
  @ValueSource(strings = {"--threads", "--no-prefix"})
  void linesOfTheProgramAreNotTheLaunchers(String option) throws Exception {
    InstalledLauncher.require("mpirun");
    Process process = start(List.of(), List.of(option, "--oversubscribe"), "mislead");
    String text = end(process);
    assertEquals(1, process.exitValue(), text);
    assertTrue(errors().contains("\nThere are not enough slots available\n"), text);
    assertTrue(!errors().contains("gradient-sync run: "), text);
  }

  @ParameterizedTest
  @CsvSource({"INT, 130", "TERM, 143"})
  void aSignalEndsAllRanks(String signal, int code) throws Exception {
    InstalledLauncher.require("mpirun");
    // What a shell starts in the background ignores it, and this test may be below.
    List<String> heeding = List.of("env", "--default-signal=INT");
    Process process = start(heeding, List.of("--oversubscribe", "--restarts=3"), "wait");
    while (process.isAlive() && errors().lines().filter(l -> l.contains("complains")).count() < 2) {
      Thread.sleep(20);
    }
    List<ProcessHandle> started = process.descendants().toList();
    new ProcessBuilder("kill", "-" + signal, Long.toString(process.pid())).start().waitFor();
    String text = end(process);
    assertEquals(code, process.exitValue(), text);
    assertTrue(started.size() >= 3, text);
    for (ProcessHandle one : started) {
      one.onExit().get(10, TimeUnit.SECONDS);
    }
    assertTrue(!text.contains("attempt"), text);
  }

  /** A scheduler ends all processes of a job, in any order. */
  @Test
  void aLauncherThatIsEndedFirstIsNotStartedAgain() throws Exception {
    Path launcher = fakeMpirun("echo started; exec sleep 60");
    List<String> options = List.of("--launcher", launcher.toString(), "--restarts=3");
    Process process = start(List.of(), options, "nothing");
    while (process.isAlive() && !Files.readString(folder.resolve("out")).contains("started")) {
      Thread.sleep(20);
    }
    for (ProcessHandle first : process.children().toList()) {
      first.destroy();
      first.onExit().get(10, TimeUnit.SECONDS);
    }
    Thread.sleep(100);
    process.destroy();
    String text = end(process);
    assertEquals(143, process.exitValue(), text);
    assertEquals("started\n", text);
  }

  /** A class of mpi.jar that calls what no libmpi_java has. */
  @Test
  void bindingsOfAnotherReleaseAreSeenBefore() throws Exception {
    InstalledLauncher.require("mpirun");
    Path source = Files.createDirectories(folder.resolve("mpi")).resolve("Errhandler.java");
    Files.writeString(
        source,
        "package mpi; public final class Errhandler { static { ofAnotherRelease(); }"
            + " native static void ofAnotherRelease(); native static long getFatal();"
            + " native static long getReturn(); Errhandler(long handle) {} }");
    String classes = folder.toString();
    ToolProvider compiler = ToolProvider.findFirst("javac").orElseThrow();
    assertEquals(0, compiler.run(System.out, System.err, "-d", classes, source.toString()));
    String path = classes + File.pathSeparator + System.getProperty("java.class.path");
    Process process = start(path, List.of(), List.of("--oversubscribe"), "nothing");
    String text = end(process);
    assertEquals(3, process.exitValue(), text);
    assertTrue(text.matches("gradient-sync run: .*Java_mpi_Errhandler_ofAnotherRelease.*\n"), text);

    String java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
    String main = GradientSyncCommand.class.getName();
    Process doctor = started(List.of(java, "-cp", path, main, "doctor"));
    text = end(doctor);
    assertEquals(1, doctor.exitValue(), text);
    assertTrue(
        text.matches("(?s).*\\d\\. Open MPI's Java bindings cannot be used: .*ofAnotherRelease.*"),
        text);
  }

  /** Makes a launcher that is Open MPI's by its version, and runs a command of the shell. */
  private Path fakeMpirun(String command) throws IOException {
    Path launcher = folder.resolve("mpirun");
    String version = "[ \"$1\" != --version ] || { echo 'mpirun (Open MPI) 4.1.4'; exit; }";
    Files.writeString(launcher, "#!/bin/sh\n" + version + "\n" + command + "\n");
    assertTrue(launcher.toFile().setExecutable(true));
    return launcher;
  }

  private Process start(List<String> below, List<String> options, String argument)
      throws IOException {
    return start(System.getProperty("java.class.path"), below, options, argument);
  }

  private Process start(String classPath, List<String> below, List<String> options, String argument)
      throws IOException {
    List<String> command = new ArrayList<>(below);
    command.addAll(List.of(SCRIPT.toString(), "run", "-np", "2"));
    command.addAll(options);
    command.addAll(List.of("-Dgradientsync.reports=off", "-Dgradientsync.device=host"));
    command.addAll(List.of("--class-path", classPath));
    command.addAll(List.of(RankProgram.class.getName(), argument));
    return started(command);
  }

  private Process started(List<String> command) throws IOException {
    ProcessBuilder builder =
        new ProcessBuilder(command)
            .redirectOutput(folder.resolve("out").toFile())
            .redirectError(folder.resolve("err").toFile());
    builder.environment().put("JAVA_HOME", System.getProperty("java.home"));
    builder.environment().put("JAVA_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC");
    builder.environment().put("OMPI_ALLOW_RUN_AS_ROOT", "1");
    builder.environment().put("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    builder.environment().remove("UCX_ERROR_SIGNALS");
    return builder.start();
  }

  private String errors() throws IOException {
    return Files.readString(folder.resolve("err"));
  }

  private String end(Process process) throws Exception {
    if (!process.waitFor(SECONDS, TimeUnit.SECONDS)) {
      process.destroy();
      process.waitFor(10, TimeUnit.SECONDS);
    }
    return Files.readString(folder.resolve("out")) + errors();
  }
}
