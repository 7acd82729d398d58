package org.gradientsync.examples;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;

import java.util.random.RandomGenerator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests the estimate of pi with ranks as threads. */
class MonteCarloPiTest {
  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 4})
  void isNearPi(int ranks) {
    Run run = Run.of(new MonteCarloPi(), "--local=" + ranks, "--samples=200001").exits(0);
    run.prints(
        "Total samples: " + ranks * 200_001L,
        "[PASS] The estimate is as near to pi as chance allows.");
    assertEquals(Math.PI, run.number("Pi estimate:"), 0.02);
    assertEquals(Math.abs(run.number("Pi estimate:") - Math.PI), run.number("Error:"), 1e-7);
  }

  @Test
  void runsAlone() {
    Run.of(new MonteCarloPi(), "--samples=1000").exits(0).prints("Total samples: 1000");
  }

  @Test
  void seedDecides() {
    String first = Run.of(new MonteCarloPi(), "--local=2", "--samples=999").exits(0).out();
    assertEquals(first, Run.of(new MonteCarloPi(), "--local=2", "--samples=999").out());
    assertNotEquals(
        first, Run.of(new MonteCarloPi(), "--local=2", "--samples=999", "--seed=5").out());
  }

  @Test
  void hitsOfAllRanksCount() {
    MonteCarloPi everyThird =
        new MonteCarloPi() {
          @Override
          long countHits(long points, RandomGenerator random) {
            return points / 3;
          }
        };
    Run run = Run.of(everyThird, "--local=3", "--samples=300").exits(1);
    assertEquals(4 / 3.0, run.number("Pi estimate:"), 1e-7);
    run.prints("[FAIL] The estimate is further from pi than chance allows.");
  }

  @ParameterizedTest
  @ValueSource(strings = {"--samples=0", "--samples=-5", "--samples=x", "--seed=x"})
  void impossibleValuesAreBadUse(String option) {
    Run.of(new MonteCarloPi(), option).exits(2).complainsInOneLine("--s");
  }
}
