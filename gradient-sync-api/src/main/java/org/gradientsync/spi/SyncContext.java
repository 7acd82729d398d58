package org.gradientsync.spi;

import java.util.Optional;
import org.gradientsync.Communicator;
import org.gradientsync.DataType;

/**
 * What one rank's sync has when it looks for a reducer.
 *
 * @param group the ranks, and how they meet; {@link RankGroup#transport()} leads to the backend
 * @param communicator of the same ranks, for exchanges while a reducer is built or a buffer is
 *     registered; the reducer does not close it
 * @param device this rank's device
 * @param settings what the user asked for
 */
public record SyncContext(
    RankGroup group, Communicator communicator, BackendDevice device, Settings settings) {
  /**
   * What FLOAT32 sums and averages travel as; see {@link
   * org.gradientsync.GradientSync.Builder#wire}.
   *
   * @return FLOAT16 or BFLOAT16, or empty if they travel as they are; the same on all ranks
   */
  public Optional<DataType> wire() {
    return settings.wire();
  }

  /**
   * Whether gradients have to be finite; see {@link
   * org.gradientsync.GradientSync.Builder#requireFinite}.
   *
   * @return the same on all ranks
   */
  public boolean finite() {
    return settings.finite();
  }
}
