package org.gradientsync.examples;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Kills a rank of a training that goes on, and that the rank joins again. */
class ElasticMlpIT {
  private static final Path TOOL = Script.BIN.resolve("../../tools/bin/gradient-sync").normalize();

  @TempDir Path folder;

  @ParameterizedTest
  @ValueSource(ints = {0, 2})
  void aKilledRankJoinsAgain(int rank) throws Exception {
    CompletableFuture<Void> killer = CompletableFuture.runAsync(() -> kill(rank));
    Run run =
        Script.alone(TOOL)
            .run(
                folder,
                "run",
                "--launcher=tcp",
                "-np=3",
                "--min-np=2",
                "--class-path",
                System.getProperty("java.class.path"),
                PacedMlp.class.getName(),
                "--elastic",
                "--device=cpu",
                "--optimizer=adam",
                "--widths=8,16,4",
                "--rows=" + PacedMlp.ROWS,
                "--steps=3000",
                "--checkpoint=file",
                "--checkpoint-every=10")
            .exits(0);
    killer.get();
    run.complains("rank " + rank + " was lost (exit code 137, signal 9); it is started again")
        .printsLike("\\[\\d] Ranks from step [1-9]\\d* on: 2")
        .printsLike("\\[\\d] Ranks from step [1-9]\\d* on: 3")
        .printsLike("\\[\\d] Ranks at the end: 3, changes: 2")
        .printsLike("\\[\\d] \\[PASS] All ranks have identical weights\\.");
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
