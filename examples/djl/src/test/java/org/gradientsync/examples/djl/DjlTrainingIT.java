package org.gradientsync.examples.djl;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.gradientsync.examples.Run;
import org.gradientsync.examples.Script;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The program through its launch script, alone, under mpirun, and over TCP. */
@Execution(ExecutionMode.SAME_THREAD) // its jobs fill the cores
class DjlTrainingIT {
  /** Relative. The same rows, whose float32 gradients are added up in another order. */
  private static final double TOLERANCE = 1e-5;

  private static final Pattern LOSS = Pattern.compile("[Ll]oss: ([0-9.]+)");

  private static final Path PROGRAM =
      Path.of(System.getProperty("basedir", ""))
          .toAbsolutePath()
          .resolveSibling("bin/djl-training");

  @TempDir Path folder;

  @Test
  void threeRanksHaveTheLossesOfOne() throws Exception {
    String[] options = {"--epochs=2", "--rows=1500", "--batch=15"};
    Path models = folder.resolve("models");
    Run three =
        Script.underMpirun(3, PROGRAM.toString())
            .run(folder, options[0], options[1], options[2], "--save=" + models)
            .exits(0)
            .prints("Ranks: 3, reducer shared");
    assertTrue(three.out().contains("[PASS] "), three::toString);
    List<Double> alone =
        losses(
            Script.alone(PROGRAM).run(folder, options).exits(0).prints("Ranks: 1, reducer local"));
    List<Double> losses = losses(three);
    assertEquals(2 * 2, losses.size(), three::toString); // of two epochs
    for (int i = 0; i < losses.size(); i++) {
      double tolerance = TOLERANCE * alone.get(i);
      assertEquals(alone.get(i), losses.get(i), tolerance, () -> alone + " " + three);
    }
    assertEquals(List.of("digits-0002.params"), names(models));
  }

  @Test
  void tooFewEpochsFail() throws Exception {
    Run run = Script.alone(PROGRAM).run(folder, "--epochs=1", "--rows=60").exits(1);
    assertTrue(run.out().contains("[FAIL] "), run::toString);
  }

  @ParameterizedTest
  @ValueSource(strings = {"--batch=0", "--epochs=0", "--rows=4", "--rows=-5", "--rows=2739138"})
  void whatCannotBeIsRefused(String option) throws Exception {
    Run run = Script.alone(PROGRAM).run(folder, option).exits(2);
    String name = option.substring(0, option.indexOf('='));
    run.complainsInOneLine("djl-training: " + name + " must be ");
  }

  @Test
  void aRankMayHaveNoRows() throws Exception {
    Run run =
        Script.underMpirun(2, PROGRAM.toString()).run(folder, "--rows=5", "--epochs=1").exits(1);
    assertTrue(run.out().contains("[FAIL] ") && !run.out().contains("NaN"), run::toString);
  }

  @Test
  void theOthersGoOnWhenRankZeroIsKilled() throws Exception {
    List<Process> ranks = new ArrayList<>();
    try {
      int port = freePort();
      for (int rank = 0; rank < 3; rank++) {
        ranks.add(start(rank, port));
      }
      while (!Files.readString(log(0)).contains("Epoch 1,")) {
        assertTrue(ranks.get(0).isAlive(), () -> "rank 0 has ended: " + logs());
        Thread.sleep(5);
      }
      ranks.get(0).destroyForcibly();
      for (int rank = 1; rank < 3; rank++) {
        assertTrue(ranks.get(rank).waitFor(2, TimeUnit.MINUTES), this::logs);
        assertEquals(0, ranks.get(rank).exitValue(), this::logs);
      }
    } finally {
      ranks.forEach(Process::destroyForcibly);
    }
    assertTrue(Files.readString(log(1)).contains("Ranks: 2, "), this::logs);
    assertTrue(Files.readString(log(1)).contains("[PASS] "), this::logs);
    assertEquals(List.of("digits-0003.params"), names(folder.resolve("models")));
  }

  /** Over TCP, which lets the others live. */
  private Process start(int rank, int port) throws IOException {
    ProcessBuilder builder =
        new ProcessBuilder(PROGRAM.toString(), "--elastic", "--rows=1500", "--save=models")
            .directory(folder.toFile())
            .redirectErrorStream(true)
            .redirectOutput(log(rank).toFile());
    Map<String, String> variables = builder.environment();
    variables.put("JAVA_HOME", System.getProperty("java.home"));
    variables.put("JAVA_OPTS", "-XX:TieredStopAtLevel=1");
    variables.put("RANK", Integer.toString(rank));
    variables.put("WORLD_SIZE", "3");
    variables.put("MASTER_ADDR", "127.0.0.1");
    variables.put("MASTER_PORT", Integer.toString(port));
    variables.put("GRADIENTSYNC_SECRET", "of the test");
    return builder.start();
  }

  private Path log(int rank) {
    return folder.resolve("log-" + rank);
  }

  private String logs() {
    StringBuilder all = new StringBuilder();
    try {
      for (int rank = 0; rank < 3; rank++) {
        all.append("\n== ").append(rank).append('\n').append(Files.readString(log(rank)));
      }
    } catch (IOException e) {
      all.append(e);
    }
    return all.toString();
  }

  private static int freePort() throws IOException {
    try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      return socket.getLocalPort();
    }
  }

  private static List<Double> losses(Run run) {
    return LOSS.matcher(run.out()).results().map(m -> Double.parseDouble(m.group(1))).toList();
  }

  private static List<String> names(Path models) throws IOException {
    try (Stream<Path> files = Files.list(models)) {
      return files.map(file -> file.getFileName().toString()).toList();
    }
  }
}
