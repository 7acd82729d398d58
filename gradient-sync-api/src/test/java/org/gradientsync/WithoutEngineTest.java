package org.gradientsync;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.junit.jupiter.api.Test;

/** The API alone, as these tests have it on their class path. */
class WithoutEngineTest {
  @Test
  void saysWhatToAdd() {
    assertEquals(
        "no engine was found: service=org.gradientsync.spi.SyncProvider; add"
            + " org.gradientsync:gradient-sync-core to the class path or module path, and if jars"
            + " were merged into one, merge their META-INF/services",
        assertThrows(UnavailableException.class, GradientSync::create).getMessage());
  }
}
