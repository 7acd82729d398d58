package org.gradientsync.cuda;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.gradientsync.GradientSync;
import org.gradientsync.UnavailableException;
import org.junit.jupiter.api.Test;

/** Asking for a GPU where there is none to be had. */
class CudaDeviceProviderTest {
  @Test
  void askedForByNameItSaysWhyNot() {
    UnavailableException e =
        assertThrows(
            UnavailableException.class,
            () -> GradientSync.builder().device("cuda").create().close());
    assertTrue(e.getMessage().contains("device cuda is not available"), e.getMessage());
    assertTrue(e.getMessage().contains("has no device yet"), e.getMessage());
  }

  @Test
  void notAskedForTheHostIsTaken() {
    try (GradientSync sync = GradientSync.create()) {
      assertEquals("host", sync.device().kind());
    }
  }
}
