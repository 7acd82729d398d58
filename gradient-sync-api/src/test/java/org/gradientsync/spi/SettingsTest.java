package org.gradientsync.spi;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.time.Duration;
import java.util.Map;
import org.junit.jupiter.api.Test;

class SettingsTest {
  @Test
  void noGraceCanBeGivenInBothWays() {
    for (String none : new String[] {"0", "PT0S"}) {
      Settings settings = new Settings(Map.of("shutdown.grace", none));
      assertEquals(Duration.ZERO, settings.shutdownGrace());
    }
  }
}
