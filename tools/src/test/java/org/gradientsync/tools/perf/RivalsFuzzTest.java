package org.gradientsync.tools.perf;

import static org.junit.jupiter.api.Assertions.assertNotNull;

import com.code_intelligence.jazzer.api.FuzzedDataProvider;
import com.code_intelligence.jazzer.junit.FuzzTest;
import java.io.IOException;

/** Reads arbitrary text as what rivals took. */
class RivalsFuzzTest {
  @FuzzTest
  void anyTextIsReadOrRefused(FuzzedDataProvider data) {
    String text = data.consumeRemainingAsString();
    try {
      Rivals.parse(text).forEach(rival -> assertNotNull(rival.reducer()));
    } catch (IOException e) {
      assertNotNull(e.getMessage());
    }
  }
}
