package org.gradientsync.examples;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests the training of a perceptron whose ranks average every few steps only. */
class LocalStepsTest {
  private static Run run(int ranks, String... options) {
    String[] task = {"--local=" + ranks, "--data=teacher", "--steps=800", "--rate=0.5"};
    String[] all = Stream.of(task, options).flatMap(Stream::of).toArray(String[]::new);
    return Run.of(new TrainMlp(), all).exits(0);
  }

  @ParameterizedTest
  @ValueSource(strings = {"average", "nesterov"})
  void fewerAveragesReachAboutTheLoss(String outer) {
    double exact = run(2).number("Final loss:");
    Run few = run(2, "--local-steps=8", "--outer=" + outer);
    few.prints(
        "Bytes per step: 3072 given to collectives on each rank, 12.5% of the 24576 of the"
            + " gradients",
        "[PASS] All ranks have identical weights.");
    double loss = few.number("Final loss:");
    assertTrue(loss < 1.5 * exact, loss + ", exact " + exact);
  }

  @Test
  void aRankAloneTrainsAsWithoutLocalSteps() {
    double exact = run(1).number("Final loss:");
    assertEquals(exact, run(1, "--local-steps=8").number("Final loss:"), 1e-6 * exact);
    double outer = run(1, "--local-steps=8", "--outer=nesterov").number("Final loss:");
    assertNotEquals(exact, outer, 1e-3 * exact);
  }

  @ParameterizedTest
  @CsvSource({
    "--outer=mean, --outer takes average or nesterov: --outer mean",
    "--steps=9, --steps must be a multiple of --local-steps: --steps 9 --local-steps 2",
    "--hook=topk:0.1, --local-steps does not go with --hook",
    "--alone, --local-steps does not go with",
    "--checkpoint=file, --local-steps does not go with"
  })
  void refusesWhatDoesNotGoTogether(String option, String text) {
    Run.of(new TrainMlp(), "--local=2", "--local-steps=2", option).exits(2).complains(text);
  }

  @Test
  void refusesNesterovWithoutLocalSteps() {
    Run.of(new TrainMlp(), "--outer=nesterov").exits(2).complains("needs --local-steps");
  }
}
