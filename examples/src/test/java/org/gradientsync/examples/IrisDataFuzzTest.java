package org.gradientsync.examples;

import static org.junit.jupiter.api.Assertions.assertTrue;

import com.code_intelligence.jazzer.api.FuzzedDataProvider;
import com.code_intelligence.jazzer.junit.FuzzTest;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.gradientsync.UnavailableException;

/** Reads arbitrary text as the data set. */
class IrisDataFuzzTest {
  private static final int ROWS = IrisData.TRAINING + IrisData.TESTING;

  @FuzzTest
  void anyLinesAreDataOrRefused(FuzzedDataProvider data) {
    List<String> lines = new ArrayList<>(Collections.nCopies(ROWS, "5.1,3.5,1.4,0.2,0"));
    lines.set(data.consumeInt(0, ROWS - 1), data.consumeString(40));
    lines.set(data.consumeInt(0, ROWS - 1), data.consumeRemainingAsString());
    try {
      IrisData iris = new IrisData(7, lines);
      double[] inputs = new double[ROWS * IrisData.INPUTS];
      double[] targets = new double[ROWS * IrisData.KINDS];
      iris.rows(0, ROWS, inputs, targets);
      for (double input : inputs) {
        assertTrue(Double.isFinite(input), "input=" + input);
      }
      for (int row = 0; row < ROWS; row++) {
        double kinds = targets[3 * row] + targets[3 * row + 1] + targets[3 * row + 2];
        assertTrue(kinds == 1, "row=" + row);
      }
    } catch (UnavailableException e) {
      assertTrue(e.getMessage().startsWith("data is not what was expected"), e::toString);
    }
  }
}
