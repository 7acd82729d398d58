package org.gradientsync.mpi;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.List;
import org.gradientsync.spi.Availability;
import org.junit.jupiter.api.Test;

/**
 * Tests {@code cuda-aware} where it is not available: the class path of this module's tests has no
 * GPU backend.
 */
class CudaAwareIT {
  @Test
  void aTrialThatEndsBadlyIsAReasonAndNoMore() {
    Mpirun.require();
    Availability availability = CudaAwareProbe.run(Duration.ofMinutes(2));
    assertFalse(availability.usable());
    assertTrue(
        availability.reason().startsWith("a trial process ended with code"), availability.reason());
  }

  @Test
  void askedForByNameItSaysWhyNot() throws Exception {
    Mpirun.run(2, List.of("-Dgradientsync.reducer=cuda-aware"), Programs.class, "unavailable")
        .expect("reducer cuda-aware is not available")
        .expect("the gradients are not in GPU memory: device=host");
  }
}
