package org.gradientsync.examples.djl;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

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
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The program through its launch script, alone and under mpirun. */
class DjlTrainingIT {
  private static final String PASS = "[PASS] All ranks have identical weights.";

  /**
   * How far losses may be apart, relative to the loss: the same rows, whose float32 gradients are
   * added up in another order. That is about 1e-7 in the first step, and grows with the steps.
   */
  private static final double TOLERANCE = 1e-5;

  private static final long TIMEOUT_SECONDS = 180;

  @TempDir Path folder;

  @Test
  void ranksTrainAsOneProcessWithAllTheirRows() throws Exception {
    Run two = run(2, "--rows=96", "--steps=61");
    two.isRight().prints("Ranks: 2, launcher mpi");
    double[] losses = two.losses();
    double[] alone = run(0, "--rows=192", "--steps=61").isRight().losses();
    assertEquals(1 + 6 + 1, losses.length, two::toString); // steps 0, 10, ... 60, and the end
    for (int i = 0; i < losses.length; i++) {
      assertEquals(alone[i], losses[i], TOLERANCE * alone[i], "loss " + i + " of " + two);
    }
    assertTrue(losses[losses.length - 1] < losses[0] / 4, "nothing was learned: " + two);

    Run again = run(2, "--rows=96", "--steps=61").isRight();
    assertEquals(two.out(), again.out(), "another run has other bits");

    // Averaged where DJL keeps them, by another reducer: the same bits.
    Run inPlace = run(2, "--rows=96", "--steps=61", "--in-place").isRight();
    assertEquals(two.results(), inPlace.results());
  }

  @Test
  void badOptionsAreRefused() throws Exception {
    Run run = run(0, "--rows=0");
    assertEquals(2, run.code(), run::toString);
    assertEquals("djl-training: --rows must be 1 or more: --rows 0.", run.err().strip());
  }

  /** What the program did. */
  private record Run(int code, String out, String err) {
    Run isRight() {
      assertEquals(0, code, this::toString);
      return prints(PASS);
    }

    Run prints(String line) {
      assertTrue(out.lines().toList().contains(line), () -> "no \"" + line + "\" in " + this);
      return this;
    }

    List<String> results() {
      return out.lines().filter(line -> line.matches("(Step|Final|New|Weights).*")).toList();
    }

    double[] losses() {
      return out.lines()
          .filter(line -> line.matches("(Step .*, Loss|Final loss): .*"))
          .mapToDouble(line -> Double.parseDouble(line.substring(line.indexOf(": ") + 2)))
          .toArray();
    }

    @Override
    public String toString() {
      return "exit code " + code + "\n--- out\n" + out + "--- err\n" + err + "---";
    }
  }

  /** Runs the program to its end; with no ranks, without mpirun. */
  private Run run(int ranks, String... options) throws IOException, InterruptedException {
    List<String> command = new ArrayList<>();
    if (ranks > 0) {
      requireMpirun();
      command.addAll(List.of("mpirun", "--oversubscribe", "-np", Integer.toString(ranks)));
    }
    Path module = Path.of(System.getProperty("basedir", "")).toAbsolutePath();
    command.add(module.resolveSibling("bin").resolve("djl-training").toString());
    command.addAll(Arrays.asList(options));
    ProcessBuilder builder = new ProcessBuilder(command);
    Map<String, String> environment = builder.environment();
    environment.keySet().removeAll(List.of("JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS"));
    environment.put("JAVA_HOME", System.getProperty("java.home"));
    environment.put("JAVA_OPTS", "-XX:TieredStopAtLevel=1"); // starts faster
    // mpirun refuses to run for root unless told so twice; in a container there is nobody else.
    environment.put("OMPI_ALLOW_RUN_AS_ROOT", "1");
    environment.put("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    // Files, because a process that fills a pipe which nobody empties stops.
    File out = Files.createTempFile(folder, "out", ".txt").toFile();
    File err = Files.createTempFile(folder, "err", ".txt").toFile();
    Process process =
        builder.directory(folder.toFile()).redirectOutput(out).redirectError(err).start();
    boolean ended = process.waitFor(TIMEOUT_SECONDS, TimeUnit.SECONDS);
    if (!ended) {
      process.destroy(); // mpirun ends its ranks when it is asked to end, not when it is killed
      if (!process.waitFor(10, TimeUnit.SECONDS)) {
        process.destroyForcibly();
      }
    }
    Run run =
        new Run(
            ended ? process.exitValue() : -1,
            Files.readString(out.toPath()),
            Files.readString(err.toPath()));
    assertTrue(ended, () -> "did not end: " + command + "\n" + run);
    return run;
  }

  private static void requireMpirun() {
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
