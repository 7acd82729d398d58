package org.gradientsync.spi;

import java.util.Optional;
import org.gradientsync.Communicator;
import org.gradientsync.DataType;
import org.gradientsync.SumOrder;

/**
 * The parts of one rank's sync from which a reducer is created.
 *
 * @param group the sync's ranks; {@link RankGroup#transport()} leads to the backend
 * @param communicator a communicator of the same ranks, for exchanges while a reducer is created or
 *     a buffer is registered; the reducer must not close it
 * @param device this rank's device
 * @param settings the user's settings
 * @param parts the library's own, to build on
 */
public record SyncContext(
    RankGroup group,
    Communicator communicator,
    BackendDevice device,
    Settings settings,
    ReducerParts parts) {
  /**
   * The same with another group of the same ranks.
   *
   * @param other made by {@link RankGroup#split}
   * @return a context
   */
  public SyncContext with(RankGroup other) {
    return new SyncContext(other, communicator, device, settings, parts);
  }

  /**
   * The same with another device.
   *
   * @param other a device of this rank
   * @return a context
   */
  public SyncContext with(BackendDevice other) {
    return new SyncContext(group, communicator, other, settings, parts);
  }

  /**
   * {@return the type in which FLOAT32 sums and averages travel; see {@link
   * org.gradientsync.GradientSync.Builder#wire}: FLOAT16 or BFLOAT16, or empty if they travel as
   * FLOAT32; the same on all ranks}
   */
  public Optional<DataType> wire() {
    return settings.wire();
  }

  /**
   * The order in which sums are added; see {@link org.gradientsync.GradientSync.Builder#order}.
   *
   * @return RANKS unless the user allows others; the same on all ranks
   */
  public SumOrder order() {
    return settings.order();
  }

  /**
   * {@return whether reductions check that gradients are finite; see {@link
   * org.gradientsync.GradientSync.Builder#requireFinite}: true to check; the same on all ranks}
   */
  public boolean finite() {
    return settings.finite();
  }
}
