package org.gradientsync.cuda.internal.peer;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.gradientsync.GradientSync;
import org.gradientsync.cuda.CudaDevice;
import org.gradientsync.cuda.internal.driver.CudaLibrary;

/** Checks a sync's share of a GPU. */
final class PeerShares {
  private PeerShares() {}

  /**
   * Requires a rank's sync to be the first on its GPU, or on the rank's part of a shared GPU. Later
   * syncs do not use {@code stream_few_ctas} or {@code staged} for calls that overlap with other
   * work, so they would not test the hand-over.
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
