package org.gradientsync.examples;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Kills a rank of a training that gradient-sync run starts, and starts again. */
class RestartIT {
  private static final Path TOOL = Script.BIN.resolve("../../tools/bin/gradient-sync").normalize();
  private static final int STEPS = 4000; // far more than are done until the rank is killed
  private static final String[] TRAINING = {
    "--device=cpu", "--widths=32,64,8", "--steps=" + STEPS, "--checkpoint-every=20"
  };

  @TempDir Path folder;

  @Test
  void aTrainingThatLosesARankEndsWithTheSameBits() throws Exception {
    Script.requireMpirun();
    Path straight = folder.resolve("straight");
    Path disturbed = folder.resolve("disturbed");
    Run.of(new TrainMlp(), with("--local=2", "--checkpoint=" + straight)).exits(0);
    CompletableFuture<Void> killer = CompletableFuture.runAsync(() -> killARank(disturbed));
    String[] program = with("--checkpoint=" + disturbed, "--resume");
    String[] start = {
      "run",
      "-np=2",
      "--oversubscribe",
      "--restarts=2",
      "--class-path",
      System.getProperty("java.class.path"),
      TrainMlp.class.getName()
    };
    Run run =
        Script.alone(TOOL)
            .run(folder, Stream.of(start, program).flatMap(Stream::of).toArray(String[]::new))
            .exits(0);
    killer.get();
    run.complains("gradient-sync: a rank was lost (exit code 137, signal 9); attempt 2 of 3 starts")
        .prints("[0] [PASS] All ranks have identical weights.")
        .printsLike("\\[0] Resumed: .*, steps done: [1-9][0-9]*0");
    assertTrue(!run.err().contains("attempt 3"), run::toString);
    assertArrayEquals(Files.readAllBytes(straight), Files.readAllBytes(disturbed));
    Run.of(new TrainMlp(), with("--local=2", "--resume", "--checkpoint=" + disturbed))
        .exits(0)
        .prints("Nothing is left to do: steps done: " + STEPS);
  }

  private static String[] with(String... more) {
    return Stream.of(TRAINING, more).flatMap(Stream::of).toArray(String[]::new);
  }

  /** Waits for the first checkpoint, and kills the last rank. */
  private static void killARank(Path checkpoint) {
    try {
      while (!Files.exists(checkpoint)) {
        Thread.sleep(5);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    List<ProcessHandle> ranks =
        ProcessHandle.current()
            .descendants()
            .filter(process -> isRank(process.info().arguments(), checkpoint))
            .toList();
    ranks.get(ranks.size() - 1).destroyForcibly();
  }

  private static boolean isRank(Optional<String[]> arguments, Path checkpoint) {
    List<String> words = List.of(arguments.orElse(new String[0]));
    return words.contains("--checkpoint=" + checkpoint)
        && !words.contains("run")
        && words.get(0).startsWith("-X"); // the JVM, not mpirun
  }
}
