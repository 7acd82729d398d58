package org.gradientsync.examples;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests the training of a perceptron with compressed gradients. */
class TrainMlpHookTest {
  @TempDir Path folder;

  /** Random targets cannot be learned, so the ranks' gradients never become alike, or small. */
  @Test
  void compressedGradientsReachTheLossOfAverages() {
    double exact = loss();
    assertEquals(exact, loss("--hook=powersgd:4"), 0.02 * exact);
    assertEquals(exact, loss("--hook=topk:0.01"), 0.02 * exact);
    double plain = loss("--hook=plain-topk:0.01");
    assertTrue(plain > 1.2 * exact, plain + ", exact " + exact);
  }

  private static double loss(String... options) {
    String[] task = {"--local=2", "--data=random", "--batches=1", "--steps=400"};
    Run run = Run.of(new TrainMlp(), with(task, options)).exits(0);
    run.prints("[PASS] All ranks have identical weights.");
    return run.number("Final loss:");
  }

  @Test
  void theBytesOfAStepAreTold() {
    // Of each layer's 1024 elements, 11 values of 8 bytes and 11 indices of 4.
    String[] task = {"--local=2", "--steps=2", "--hook-warmup=0"};
    Run.of(new TrainMlp(), with(task, "--hook=topk:0.01")).exits(0).prints(bytes(396, "1.6"));
    Run.of(new TrainMlp(), with(task, "--hook=powersgd:4")).exits(0).prints(bytes(6144, "25.0"));
  }

  private static String bytes(int bytes, String percent) {
    return String.format(
        "Bytes per step: %d given to collectives on each rank, %s%% of the 24576 of the gradients",
        bytes, percent);
  }

  @ParameterizedTest
  @ValueSource(strings = {"powersgd:2", "topk:0.05"})
  void resumedTrainingEndsWithTheSameBits(String hook) throws IOException {
    String[] common = {
      "--width=16", "--rows=5", "--batches=7", "--first-bucket-mb=0.0001", "--hook-warmup=3",
    };
    String compressed = "--hook=" + hook;
    Path whole = folder.resolve("whole");
    Path half = folder.resolve("half");
    Trained all =
        Trained.run(folder, 2, with(common, compressed, "--steps=20", "--checkpoint=" + whole));
    Trained.run(folder, 2, with(common, compressed, "--steps=11", "--checkpoint=" + half));
    String resume = "--resume=" + half;
    Run.of(new TrainMlp(), with(common, "--local=2", "--steps=20", resume))
        .exits(3)
        .complainsInOneLine("optimizer=SGD+" + hook + ", expected=SGD");
    Run.of(new TrainMlp(), with(common, compressed, "--local=3", "--steps=20", resume))
        .exits(3)
        .complainsInOneLine("cannot resume with a hook on another number of ranks: ranks=3");
    Trained second =
        Trained.run(
            folder, 2, with(common, compressed, "--steps=20", resume, "--checkpoint=" + half));
    assertEquals(all.digest(), second.digest());
    assertArrayEquals(Files.readAllBytes(whole), Files.readAllBytes(half));
    assertNotEquals(all.digest(), Trained.run(folder, 2, with(common, "--steps=20")).digest());
  }

  @ParameterizedTest
  @ValueSource(strings = {"powersgd:0", "powersgd:1.5", "topk:2", "topk:0", "topk", "other:1"})
  void badHooksAreRefused(String hook) {
    Run.of(new TrainMlp(), "--hook=" + hook)
        .exits(2)
        .complainsInOneLine("--hook takes powersgd:N, topk:FRACTION or plain-topk:FRACTION: ");
  }

  @Test
  void hooksDoNotGoWithShards() {
    Run.of(new TrainMlp(), "--hook=topk:0.1", "--optimizer=adam", "--sharded")
        .exits(2)
        .complainsInOneLine("--hook does not go with --sharded");
  }

  private static String[] with(String[] options, String... more) {
    return Stream.concat(Stream.of(options), Stream.of(more)).toArray(String[]::new);
  }
}
