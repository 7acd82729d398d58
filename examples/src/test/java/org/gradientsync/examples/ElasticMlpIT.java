package org.gradientsync.examples;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Tests trainings of processes that go on without a rank. */
class ElasticMlpIT {
  private static final Path TOOL = Script.BIN.resolve("../../tools/bin/gradient-sync").normalize();

  @TempDir Path folder;

  /** Runs a program with options of the launcher, and of its own. */
  private Run run(Script tool, List<String> launch, Class<?> program, String... options)
      throws Exception {
    List<String> words = new ArrayList<>(List.of("run", "--launcher=tcp", "-np=3", "--min-np=2"));
    words.addAll(launch);
    words.addAll(List.of("--class-path", System.getProperty("java.class.path")));
    words.add(program.getName());
    words.addAll(List.of("--elastic", "--device=cpu", "--widths=8,16,4"));
    words.add("--rows=" + PacedMlp.ROWS);
    words.addAll(List.of(options));
    return tool.run(folder, words.toArray(String[]::new))
        .exits(0)
        .printsLike("\\[\\d] \\[PASS] All ranks have identical weights\\.");
  }

  @ParameterizedTest
  @CsvSource({"0, adam, --overlap", "1, adam, --sharded", "2, sgd, --no-overlap"})
  void aKilledRankJoinsAgain(int rank, String optimizer, String option) throws Exception {
    String[] options = {"--steps=300", option, "--optimizer=" + optimizer};
    requireBack(runAndKill(rank, false, Script.alone(TOOL), List.of(), options))
        .complains("rank " + rank + " was lost (exit code 137, signal 9); it is started again");
  }

  @Test
  void theRanksOfALostHostJoinOnAnother() throws Exception {
    requireBack(loseHost("", "--steps=300"))
        .complains("host node2 was lost; its ranks are started on node1 to join the others");
  }

  @Test
  void theOthersGoOnIfTheRanksOfALostHostCannotBeStarted() throws Exception {
    loseHost("[ $(wc -l <connections) -lt 3 ] || exit 255\n", "--steps=60")
        .complains("no host, or no connection to it any more: host=node1, exit code of ssh=255")
        .printsLike("\\[\\d] Ranks at the end: 2, changes: 1");
  }

  /**
   * Kills the only rank of the second host, and what has started it.
   *
   * @param ssh what an ssh does before it connects
   */
  private Run loseHost(String ssh, String steps) throws Exception {
    Path program = Files.createDirectory(folder.resolve("bin")).resolve("ssh");
    Files.writeString(
        program,
        "#!/bin/sh\nwhile [ $1 != node1 ] && [ $1 != node2 ]; do shift; done\nshift\n"
            + "echo one >>connections\n"
            + ssh
            + "exec sh -c \"$*\"\n");
    assertTrue(program.toFile().setExecutable(true));
    Script tool = Script.alone(TOOL).set("PATH", program.getParent() + ":" + System.getenv("PATH"));
    List<String> launch = List.of("--hosts=node1:2,node2:1", "--master=127.0.0.1:" + freePort());
    return runAndKill(2, true, tool, launch, steps, "--overlap");
  }

  private static int freePort() throws IOException {
    try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      return socket.getLocalPort();
    }
  }

  private Run runAndKill(
      int rank, boolean host, Script tool, List<String> launch, String... options)
      throws Exception {
    CompletableFuture<Void> killer = CompletableFuture.runAsync(() -> kill(rank, host));
    List<String> all = new ArrayList<>(List.of(options));
    all.addAll(List.of("--checkpoint=file", "--checkpoint-every=10"));
    Run run = run(tool, launch, PacedMlp.class, all.toArray(String[]::new));
    killer.get();
    return run;
  }

  private static Run requireBack(Run run) {
    return run.printsLike("\\[\\d] Ranks from step [1-9]\\d* on: 2")
        .printsLike("\\[\\d] Ranks from step [1-9]\\d* on: 3")
        .printsLike("\\[\\d] Ranks at the end: 3, changes: 2");
  }

  /** As it stands there, but with fewer steps, and these classes. */
  @Test
  void theCommandOfTheDocumentTrains() throws Exception {
    String page = Files.readString(Script.BIN.resolve("../../docs/when-a-rank-is-lost.md"));
    Matcher block =
        Pattern.compile("```\ntools/bin/gradient-sync (run [^`]*TrainMlp --elastic [^`]*)```")
            .matcher(page);
    assertTrue(block.find());
    String[] words =
        block
            .group(1)
            .replaceAll("'examples/[^']*'", System.getProperty("java.class.path"))
            .replace("--steps 2000", "--steps 20 --device cpu")
            .strip()
            .split("[\\\\\\s]+");
    Script.alone(TOOL)
        .run(folder, words)
        .exits(0)
        .printsLike("\\[\\d] \\[PASS] All ranks have identical weights\\.");
  }

  @Test
  void aRankWithOtherOptionsIsLeftOut() throws Exception {
    run(Script.alone(TOOL), List.of(), OwnRateMlp.class, "--steps=30")
        .complains("[1] train-mlp: --rate is not that of rank 0: give all ranks the same options")
        .printsLike("\\[0] Ranks at the end: 2, changes: 1");
  }

  /** Waits for the first checkpoint, and kills a rank, or what has started it at first. */
  private void kill(int rank, boolean host) {
    try {
      while (!Files.exists(folder.resolve("file"))) {
        Thread.sleep(5);
      }
      for (Path file : PacedMlp.processes(folder)) {
        String[] parts = file.getFileName().toString().split("-");
        if (Integer.parseInt(parts[1]) == rank) {
          ProcessHandle process = ProcessHandle.of(Long.parseLong(parts[0])).orElseThrow();
          if (host) {
            process.parent().orElseThrow().destroyForcibly();
          }
          process.destroyForcibly();
        }
      }
    } catch (Exception e) {
      throw new IllegalStateException(e);
    }
  }
}
