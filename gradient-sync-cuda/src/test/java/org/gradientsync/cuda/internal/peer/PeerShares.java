package org.gradientsync.cuda.internal.peer;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.gradientsync.GradientSync;
import org.gradientsync.cuda.CudaDevice;
import org.gradientsync.cuda.internal.driver.CudaLibrary;

/** What tests have to know of the share of a GPU that a sync has. */
final class PeerShares {
  private PeerShares() {}

  /**
   * Requires a rank's sync to be the first one on its GPU, or on the part of it that the rank has
   * where threads share it: the others' kernels that overlap with other work are not {@code
   * stream_few_ctas} or {@code staged}, and hand nothing over.
   */
  static void requireLargest(GradientSync sync) {
    int ordinal = ((CudaDevice) sync.device()).ordinal();
    boolean mpirun = System.getenv("OMPI_COMM_WORLD_SIZE") != null;
    int turn = mpirun ? 0 : sync.rank() / CudaLibrary.api().deviceCount();
    try (PeerBudget.Share next = PeerBudget.take(ordinal, turn)) {
      assertEquals(1, next.place(), "the place of a second sync on this GPU");
    }
  }
}
