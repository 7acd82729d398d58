package org.gradientsync.examples;

import static org.junit.jupiter.api.Assertions.assertFalse;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests the matrix product with ranks as threads. */
class MatrixMultiplyTest {
  private static final String PASS = "[PASS] The product is correct.";

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 4})
  void rowsNeedNotDivide(int ranks) {
    for (int n : new int[] {1, 2, 3, 4, 5, 7, 64, 101}) {
      Run.of(new MatrixMultiply(), "--local=" + ranks, "--n=" + n)
          .exits(0)
          .prints("Result shape: (" + n + ", " + n + ")", PASS);
    }
  }

  @Test
  void runsAlone() {
    Run.of(new MatrixMultiply(), "--n=10").exits(0).prints("Rows per rank: 10", PASS);
  }

  @Test
  void largeProductsAreCheckedWhenAsked() {
    Run unchecked = Run.of(new MatrixMultiply(), "--local=2", "--n=513").exits(0);
    unchecked.prints("Not checked: --check compares with a direct product.");
    assertFalse(unchecked.out().contains("PASS"), unchecked::toString);
    Run.of(new MatrixMultiply(), "--local=2", "--n=513", "--check").exits(0).prints(PASS);
    Run.of(new MatrixMultiply(), "--local=2", "--n=512").exits(0).prints(PASS);
  }

  /** Makes one element wrong by the smallest amount, on the rank that has fewer rows. */
  private static final class Spoiled extends MatrixMultiply {
    @Override
    void multiply(float[] a, float[] b, float[] c, int rows, int columns) {
      super.multiply(a, b, c, rows, columns);
      if (rows < c.length / columns) {
        c[rows * columns - 1] = Math.nextUp(c[rows * columns - 1]);
      }
    }
  }

  @Test
  void oneWrongBitFails() {
    Run.of(new Spoiled(), "--local=2", "--n=5")
        .exits(1)
        .complains("wrong element: row=4, column=4")
        .prints("[FAIL] The product is not correct.");
    Run.of(new Spoiled(), "--local=2", "--n=4").exits(0);
  }

  @ParameterizedTest
  @ValueSource(strings = {"--n=0", "--n=-1", "--n=16385", "--n=x"})
  void impossibleValuesAreBadUse(String option) {
    Run.of(new MatrixMultiply(), "--local=2", option).exits(2).complainsInOneLine("--n");
  }
}
