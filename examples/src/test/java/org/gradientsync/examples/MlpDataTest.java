package org.gradientsync.examples;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Tests that rows depend only on their number. */
class MlpDataTest {
  private static final int[] WIDTHS = {IrisData.INPUTS, 4, IrisData.KINDS};

  static Stream<MlpData> data() {
    return Stream.of(
        new TeacherData(1, WIDTHS),
        new RandomData(1, IrisData.INPUTS, IrisData.KINDS),
        new IrisData(1));
  }

  @ParameterizedTest
  @MethodSource("data")
  void rowsAreTheSameHoweverTheyAreDivided(MlpData data) {
    double[] inputs = new double[12 * IrisData.INPUTS];
    double[] targets = new double[12 * IrisData.KINDS];
    data.rows(115, 12, inputs, targets); // beyond the last iris
    for (int row = 0; row < 12; row += 3) {
      double[] someInputs = new double[3 * IrisData.INPUTS];
      double[] someTargets = new double[3 * IrisData.KINDS];
      data.rows(115 + row, 3, someInputs, someTargets);
      int in = row * IrisData.INPUTS;
      int out = row * IrisData.KINDS;
      assertArrayEquals(Arrays.copyOfRange(inputs, in, in + someInputs.length), someInputs);
      assertArrayEquals(Arrays.copyOfRange(targets, out, out + someTargets.length), someTargets);
    }
    assertFalse(Arrays.equals(inputs, 0, 20, inputs, 20, 40));
    assertTrue(Arrays.stream(targets).anyMatch(target -> target > 0));
  }

  @Test
  void irisesAreStandardizedAndAllThere() {
    int count = IrisData.TRAINING;
    double[] inputs = new double[count * IrisData.INPUTS];
    double[] targets = new double[count * IrisData.KINDS];
    new IrisData(1).rows(0, count, inputs, targets);
    for (int column = 0; column < IrisData.INPUTS; column++) {
      double sum = 0;
      double squares = 0;
      for (int row = 0; row < count; row++) {
        double value = inputs[row * IrisData.INPUTS + column];
        sum += value;
        squares += value * value;
      }
      assertEquals(column == 4 ? 1 : 0, sum / count, 1e-12);
      assertEquals(1, squares / count, 1e-12);
    }
    double[] perKind = new double[IrisData.KINDS];
    for (int i = 0; i < targets.length; i++) {
      perKind[i % IrisData.KINDS] += targets[i];
    }
    assertEquals(count, Arrays.stream(perKind).sum());
    for (double kind : perKind) {
      assertTrue(kind >= 20 && kind <= 50, () -> Arrays.toString(perKind));
    }
  }
}
