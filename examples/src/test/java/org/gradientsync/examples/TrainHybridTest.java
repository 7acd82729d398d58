package org.gradientsync.examples;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.gradientsync.GradientSync;
import org.gradientsync.examples.hybrid.HybridSettings;
import org.gradientsync.examples.hybrid.HybridTraining;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests the training with ranks as threads. */
class TrainHybridTest {
  private static final String PASS =
      "\\[PASS] The losses of all steps equal those of one rank; relative difference: .*";

  @ParameterizedTest
  @CsvSource({
    "2,2,2", "1,2,2", "2,1,2", "2,2,1", "4,1,1", "1,4,1", "1,1,4", "1,1,1",
  })
  void lossesAreThoseOfOneRank(int tensor, int pipeline, int data) {
    List<String> options =
        List.of(
            "--local=" + tensor * pipeline * data,
            "--tensor=" + tensor,
            "--pipeline=" + pipeline,
            "--data=" + data,
            "--width=8",
            "--batch=16",
            "--steps=6");
    for (List<String> more :
        List.of(
            List.<String>of(),
            List.of("--recompute"),
            List.of("--accumulate=2"),
            List.of("--recompute", "--accumulate=2", "--micro-batches=1"))) {
      List<String> all = new ArrayList<>(options);
      all.addAll(more);
      Run.of(new TrainHybrid(), all.toArray(String[]::new)).exits(0).printsLike(PASS);
    }
  }

  @Test
  void printsTheGridOnce() {
    Run run =
        Run.of(
            new TrainHybrid(),
            "--local=8",
            "--tensor=2",
            "--pipeline=2",
            "--steps=1",
            "--batch=8",
            "--micro-batches=2");
    run.exits(0)
        .prints(
            "Grid: 2 tensor x 2 pipeline x 2 data; tensor groups in brackets",
            "stage 0, layers 0 to 3: ranks [0 1] [2 3]",
            "stage 1, layers 4 to 7: ranks [4 5] [6 7]",
            "Activation memory, most on a rank: 3.0 KiB without --recompute, 2.0 KiB with");
    assertEquals(1, run.out().lines().filter(line -> line.startsWith("Grid: ")).count());
  }

  @Test
  void learns() {
    Run run = Run.of(new TrainHybrid(), "--local=2", "--pipeline=2", "--width=8").exits(0);
    assertTrue(run.number("Step 39, Loss:") < 0.5 * run.number("Step 0, Loss:"), run::toString);
  }

  @Test
  void theSeedChangesTheTraining() {
    String[] options = {"--local=2", "--tensor=2", "--steps=1", "--width=8"};
    double one = Run.of(new TrainHybrid(), options).number("Step 0, Loss:");
    assertEquals(one, Run.of(new TrainHybrid(), options).number("Step 0, Loss:"));
    String[] other = Arrays.copyOf(options, options.length + 1);
    other[options.length] = "--seed=2";
    assertFalse(one == Run.of(new TrainHybrid(), other).number("Step 0, Loss:"));
  }

  @Test
  void aBenchmarkIsTimedAndCheckedOnlyOnDemand() {
    String[] options = {"--local=2", "--tensor=2", "--steps=8", "--width=8", "--benchmark"};
    Run run = Run.of(new TrainHybrid(), options).exits(0);
    run.printsLike("Step: [0-9.]+ (us|ms|s), mean of 3 steps");
    run.printsLike("Throughput: \\d+ rows/s over all ranks");
    run.prints("[PASS] All ranks of each data group have identical weights.");
    String[] checked = Arrays.copyOf(options, options.length + 1);
    checked[options.length] = "--check";
    Run.of(new TrainHybrid(), checked).exits(0).printsLike(PASS);
  }

  @Test
  void withoutTheCheckOnlyTheWeightsAreCompared() {
    Run.of(new TrainHybrid(), "--local=2", "--data=2", "--steps=2", "--no-check")
        .exits(0)
        .prints("[PASS] All ranks of each data group have identical weights.");
  }

  @Test
  void anotherTrainingFails() {
    TrainHybrid faster =
        new TrainHybrid() {
          @Override
          HybridTraining training(GradientSync sync, HybridSettings s) {
            double rate = s.rate() * 1.01;
            return super.training(
                sync,
                new HybridSettings(
                    s.grid(), s.model(), s.batch(), s.microBatches(), s.accumulate(), rate, false));
          }
        };
    Run.of(faster, "--local=4", "--tensor=2", "--steps=4")
        .exits(1)
        .complains("wrong loss: step=1, ")
        .printsLike("\\[FAIL] The losses differ from those of one rank; relative difference: .*");
  }

  @Test
  void divergedTrainingFails() {
    Run.of(new TrainHybrid(), "--local=2", "--tensor=2", "--rate=1e30")
        .exits(1)
        .prints("[FAIL] The training has diverged: try a smaller --rate.");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "--tensor=0",
        "--tensor=3",
        "--tensor=64",
        "--pipeline=0",
        "--pipeline=5",
        "--pipeline=4",
        "--data=0",
        "--data=3",
        "--layers=0",
        "--layers=3",
        "--layers=2000",
        "--width=0",
        "--width=100000",
        "--batch=0",
        "--batch=30",
        "--micro-batches=0",
        "--micro-batches=3",
        "--accumulate=0",
        "--accumulate=3",
        "--steps=0",
        "--rate=0",
        "--rate=NaN",
        "--rate=Infinity",
        "--rate=x",
        "--seed=x"
      })
  void impossibleValuesAreBadUse(String option) {
    Run.of(new TrainHybrid(), "--local=2", option)
        .exits(2)
        .complainsInOneLine(option.substring(0, option.indexOf('=')));
  }

  @Test
  void aGridOfAnotherNumberOfRanksIsBadUse() {
    Run.of(new TrainHybrid(), "--local=4", "--tensor=2", "--pipeline=2", "--data=2")
        .exits(2)
        .complainsInOneLine(
            "--tensor, --pipeline and --data must multiply to the number of ranks: --tensor 2,"
                + " --pipeline 2, --data 2, ranks=4");
  }
}
