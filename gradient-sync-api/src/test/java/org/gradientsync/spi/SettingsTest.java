package org.gradientsync.spi;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.time.Duration;
import java.time.temporal.ChronoUnit;
import java.util.Map;
import org.junit.jupiter.api.Test;

class SettingsTest {
  @Test
  void severalOfTheLongestLimitsFitALong() {
    long longest = Timeouts.nanos(ChronoUnit.FOREVER.getDuration());
    assertEquals(20, Math.multiplyExact(20, longest) / longest);
  }

  @Test
  void noGraceCanBeGivenInBothWays() {
    for (String none : new String[] {"0", "PT0S"}) {
      Settings settings = new Settings(Map.of("shutdown.grace", none));
      assertEquals(Duration.ZERO, settings.shutdownGrace());
    }
  }

  @Test
  void aNegativeGraceIsRefusedAsSuch() {
    Settings settings = new Settings(Map.of("shutdown.grace", "-1"));
    IllegalArgumentException e =
        assertThrows(IllegalArgumentException.class, settings::shutdownGrace);
    assertEquals(
        "shutdown.grace must not be negative: gradientsync.shutdown.grace=-1", e.getMessage());
  }

  @Test
  void silenceIsASecondOrMore() {
    assertEquals(Duration.ofSeconds(30), new Settings(Map.of()).elasticSilence());
    Settings one = new Settings(Map.of("elastic.silence", "1"));
    assertEquals(Duration.ofSeconds(1), one.elasticSilence());
    Settings less = new Settings(Map.of("elastic.silence", "PT0.9S"));
    IllegalArgumentException e = assertThrows(IllegalArgumentException.class, less::elasticSilence);
    assertEquals(
        "less than a second: gradientsync.elastic.silence=PT0.9S; give 1 or more", e.getMessage());
  }
}
