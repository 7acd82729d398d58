package org.gradientsync.tools.program;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

/** Tests the numbers in outputs. */
class UnitsTest {
  @Test
  void timesAreInTheUnitThatSuitsThem() {
    assertEquals("1.23 us", Units.time(0.001234));
    assertEquals("123 us", Units.time(0.1234));
    assertEquals("12.3 ms", Units.time(12.34));
    assertEquals("2.50 s", Units.time(2500));
  }
}
