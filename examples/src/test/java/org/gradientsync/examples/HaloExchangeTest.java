package org.gradientsync.examples;

import org.gradientsync.GradientSync;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests the heat ring with ranks as threads. */
class HaloExchangeTest {
  private static final String PASS = "[PASS] All cells are bit-equal to the serial computation.";

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 4, 5})
  void isBitEqualToSerial(int ranks) {
    for (int cells : new int[] {1, 2, 3, 50}) {
      for (int steps : new int[] {0, 1, 37}) {
        Run.of(new HaloExchange(), "--local=" + ranks, "--cells=" + cells, "--steps=" + steps)
            .exits(0)
            .prints("Cells: " + ranks * cells + ", steps: " + steps, PASS);
      }
    }
  }

  @Test
  void runsAlone() {
    Run.of(new HaloExchange(), "--cells=10", "--steps=10").exits(0).prints(PASS);
  }

  @Test
  void ghostsFromTheWrongSideFail() {
    HaloExchange mirrored =
        new HaloExchange() {
          @Override
          void exchangeGhosts(GradientSync sync, HeatPiece piece) {
            super.exchangeGhosts(sync, piece);
            double[] left = new double[1];
            double[] right = new double[1];
            piece.leftGhost().copyTo(left);
            piece.rightGhost().copyTo(right);
            piece.leftGhost().copyFrom(right);
            piece.rightGhost().copyFrom(left);
          }
        };
    for (int ranks : new int[] {1, 2, 3}) {
      Run.of(mirrored, "--local=" + ranks, "--cells=10", "--steps=3")
          .exits(1)
          .complains("wrong cell")
          .prints("[FAIL] The cells differ from the serial computation.");
    }
  }

  @Test
  void noExchangeFails() {
    HaloExchange deaf =
        new HaloExchange() {
          @Override
          void exchangeGhosts(GradientSync sync, HeatPiece piece) {
            // the ghost cells stay unchanged
          }
        };
    Run.of(deaf, "--local=2", "--cells=5", "--steps=1").exits(1);
  }

  @ParameterizedTest
  @ValueSource(strings = {"--cells=0", "--cells=-1", "--cells=1000001", "--cells=x"})
  void impossibleCellsAreBadUse(String option) {
    Run.of(new HaloExchange(), "--local=2", option).exits(2).complainsInOneLine("--cells");
  }

  @Test
  void negativeStepsAreBadUse() {
    Run.of(new HaloExchange(), "--local=2", "--steps=-1").exits(2).complainsInOneLine("--steps");
  }
}
