package org.gradientsync.tools.plot;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import java.util.function.Function;
import org.junit.jupiter.api.Test;

/** Tests the numbers at the axes of plots. */
class PlotTicksTest {
  @Test
  void logarithmicTicksAreOneTwoFive() {
    Function<Double, String> few = PlotTicks.logarithmic(0.04, 1.3);
    assertEquals(
        List.of("0.05", "", "0.1", "0.2", "", "0.5", "1", "200"),
        List.of(0.05, 0.06, 0.1, 0.2, 0.30000000000000004, 0.5, 1.0, 200.0).stream()
            .map(few)
            .toList());
    Function<Double, String> many = PlotTicks.logarithmic(1, 1e6);
    assertEquals("100", many.apply(100.0));
    assertEquals("", many.apply(200.0));
  }

  @Test
  void sizesAreSuffixed() {
    assertEquals("1", PlotTicks.size(0));
    assertEquals("1K", PlotTicks.size(10));
    assertEquals("4K", PlotTicks.size(12));
    assertEquals("1M", PlotTicks.size(20));
    assertEquals("256M", PlotTicks.size(28));
    assertEquals("1G", PlotTicks.size(30));
    assertEquals("", PlotTicks.size(12.5));
  }
}
