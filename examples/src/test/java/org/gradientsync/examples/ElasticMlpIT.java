package org.gradientsync.examples;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Tests trainings of processes that go on without a rank. */
class ElasticMlpIT {
  private static final Path TOOL = Script.BIN.resolve("../../tools/bin/gradient-sync").normalize();

  @TempDir Path folder;

  private Run run(Class<?> program, String... options) throws Exception {
    String[] start = {
      "run",
      "--launcher=tcp",
      "-np=3",
      "--min-np=2",
      "--class-path",
      System.getProperty("java.class.path"),
      program.getName(),
      "--elastic",
      "--device=cpu",
      "--widths=8,16,4",
      "--rows=" + PacedMlp.ROWS
    };
    return Script.alone(TOOL)
        .run(folder, Stream.of(start, options).flatMap(Stream::of).toArray(String[]::new))
        .exits(0)
        .printsLike("\\[\\d] \\[PASS] All ranks have identical weights\\.");
  }

  @ParameterizedTest
  @CsvSource({"0, adam, --overlap", "1, adam, --sharded", "2, sgd, --no-overlap"})
  void aKilledRankJoinsAgain(int rank, String optimizer, String option) throws Exception {
    CompletableFuture<Void> killer = CompletableFuture.runAsync(() -> kill(rank));
    Run run =
        run(
            PacedMlp.class,
            option,
            "--optimizer=" + optimizer,
            "--steps=3000",
            "--checkpoint=file",
            "--checkpoint-every=10");
    killer.get();
    run.complains("rank " + rank + " was lost (exit code 137, signal 9); it is started again")
        .printsLike("\\[\\d] Ranks from step [1-9]\\d* on: 2")
        .printsLike("\\[\\d] Ranks from step [1-9]\\d* on: 3")
        .printsLike("\\[\\d] Ranks at the end: 3, changes: 2");
  }

  @Test
  void aRankWithOtherOptionsIsLeftOut() throws Exception {
    run(OwnRateMlp.class, "--steps=30")
        .complains("[1] train-mlp: --rate is not that of rank 0: give all ranks the same options")
        .printsLike("\\[0] Ranks at the end: 2, changes: 1");
  }

  /** Waits for the first checkpoint, and kills a rank. */
  private void kill(int rank) {
    try {
      while (!Files.exists(folder.resolve("file"))) {
        Thread.sleep(5);
      }
      for (Path process : PacedMlp.processes(folder)) {
        String[] parts = process.getFileName().toString().split("-");
        if (Integer.parseInt(parts[1]) == rank) {
          ProcessHandle.of(Long.parseLong(parts[0])).orElseThrow().destroyForcibly();
        }
      }
    } catch (Exception e) {
      throw new IllegalStateException(e);
    }
  }
}
