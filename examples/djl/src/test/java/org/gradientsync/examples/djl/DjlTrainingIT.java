package org.gradientsync.examples.djl;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import org.gradientsync.examples.Run;
import org.gradientsync.examples.Script;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;

/** The program through its launch script, alone and under mpirun. */
@Execution(ExecutionMode.SAME_THREAD) // its jobs fill the cores
class DjlTrainingIT {
  private static final String PASS = "[PASS] All ranks have identical weights.";

  /**
   * How far losses may be apart, relative to the loss: the same rows, whose float32 gradients are
   * added up in another order. That is about 1e-7 in the first step, and grows with the steps.
   */
  private static final double TOLERANCE = 1e-5;

  private static final Path PROGRAM =
      Path.of(System.getProperty("basedir", ""))
          .toAbsolutePath()
          .resolveSibling("bin/djl-training");

  @TempDir Path folder;

  @Test
  void ranksTrainAsOneProcessWithAllTheirRows() throws Exception {
    Run two = right(2, "--rows=96", "--steps=61").prints("Ranks: 2, launcher mpi");
    double[] losses = losses(two);
    double[] alone = losses(right(0, "--rows=192", "--steps=61"));
    assertEquals(1 + 6 + 1, losses.length, two::toString); // steps 0, 10, ... 60, and the end
    for (int i = 0; i < losses.length; i++) {
      assertEquals(alone[i], losses[i], TOLERANCE * alone[i], "loss " + i + " of " + two);
    }
    assertTrue(losses[losses.length - 1] < losses[0] / 4, "nothing was learned: " + two);

    Run again = right(2, "--rows=96", "--steps=61");
    assertEquals(two.out(), again.out(), "another run has other bits");

    // Averaged where DJL keeps them, by another reducer: the same bits.
    Run inPlace = right(2, "--rows=96", "--steps=61", "--in-place");
    assertEquals(results(two), results(inPlace));
  }

  @Test
  void ranksWithOtherOptionsAreRefused() throws Exception {
    String program = PROGRAM.toString();
    Script.underMpirun(1, program)
        .run(folder, "--rows=64", ":", "-np", "1", program, "--rows=32")
        .exits(2)
        .complains("djl-training: --rows differs from rank to rank: rank 0 has 64; give all");
  }

  @Test
  void divergedTrainingFails() throws Exception {
    Run run = Script.alone(PROGRAM).run(folder, "--rate=1e20", "--steps=20").exits(1);
    run.prints("[FAIL] The training has diverged: try a smaller --rate.");
    assertFalse(run.out().contains("PASS"), run::toString);
  }

  @Test
  void badOptionsAreRefused() throws Exception {
    Run run = Script.alone(PROGRAM).run(folder, "--rows=0").exits(2);
    assertEquals("djl-training: --rows must be 1 or more: --rows 0.", run.err().strip());
    run = Script.alone(PROGRAM).run(folder, "--gpu", "--in-place").exits(2);
    assertEquals(
        "djl-training: --in-place is for the CPU: with --gpu there is no other way.",
        run.err().strip());
  }

  /** PyTorch for CUDA is nowhere in this build, and a GPU need not be. */
  @Test
  void gpusAreRefusedWhereTheyCannotBeUsed() throws Exception {
    Run run = Script.alone(PROGRAM).run(folder, "--gpu", "--steps=1").exits(3);
    assertTrue(
        run.err().contains("device cuda is not available")
            || run.err().contains("DJL's PyTorch has no CUDA: version="),
        run::toString);
    assertTrue(run.err().startsWith("djl-training: "), run::toString);
  }

  /** With no ranks, without mpirun. */
  private Run right(int ranks, String... options) throws IOException, InterruptedException {
    Script script =
        ranks > 0 ? Script.underMpirun(ranks, PROGRAM.toString()) : Script.alone(PROGRAM);
    return script.run(folder, options).exits(0).prints(PASS);
  }

  private static List<String> results(Run run) {
    return run.out().lines().filter(line -> line.matches("(Step|Final|New|Weights).*")).toList();
  }

  private static double[] losses(Run run) {
    return run.out()
        .lines()
        .filter(line -> line.matches("(Step .*, Loss|Final loss): .*"))
        .mapToDouble(line -> Double.parseDouble(line.substring(line.indexOf(": ") + 2)))
        .toArray();
  }
}
