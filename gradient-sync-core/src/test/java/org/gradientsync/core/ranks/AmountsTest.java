package org.gradientsync.core.ranks;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.time.Duration;
import org.junit.jupiter.api.Test;

class AmountsTest {
  @Test
  void timesAreInTheUnitThatSuitsThem() {
    assertEquals("3 s", Amounts.time(Duration.ofSeconds(3)));
    assertEquals("10 s", Amounts.time(Duration.ofSeconds(10)));
    assertEquals("90 s", Amounts.time(Duration.ofSeconds(90)));
    assertEquals("125 s", Amounts.time(Duration.ofSeconds(125)));
    assertEquals("5 min", Amounts.time(Duration.ofMinutes(5)));
    assertEquals("600 ms", Amounts.time(Duration.ofMillis(600)));
    assertEquals("2.5 s", Amounts.time(Duration.ofMillis(2500)));
    assertEquals("1.23 ms", Amounts.time(1_234_567));
    assertEquals("12.3 us", Amounts.time(12_345));
    assertEquals("7 ns", Amounts.time(7));
    assertEquals("0 ns", Amounts.time(0));
    assertEquals("365000 days", Amounts.time(Duration.ofDays(365_000)));
  }

  @Test
  void sizesAreInTheUnitThatSuitsThem() {
    assertEquals("512 B", Amounts.bytes(512));
    assertEquals("1.02 KB", Amounts.bytes(1024));
    assertEquals("40 KB", Amounts.bytes(40_000));
    assertEquals("1.05 MB", Amounts.bytes(1 << 20));
    assertEquals("4.29 GB", Amounts.bytes(1L << 32));
    assertEquals("1500 GB", Amounts.bytes(1_500_000_000_000L));
  }
}
