package org.gradientsync.examples;

import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;

/** A rank's piece of the ring on its device, with a ghost cell at each end. */
final class HeatPiece implements AutoCloseable {
  private final DeviceBuffer all;
  // Kept, because a sync prepares each new slice.
  private final DeviceBuffer leftGhost;
  private final DeviceBuffer first;
  private final DeviceBuffer last;
  private final DeviceBuffer rightGhost;
  private final DeviceBuffer cells;

  HeatPiece(GradientSync sync, int count) {
    all = sync.allocate(DataType.FLOAT64, count + 2L);
    leftGhost = all.slice(0, 1);
    first = all.slice(1, 1);
    last = all.slice(count, 1);
    rightGhost = all.slice(count + 1L, 1);
    cells = all.slice(1, count);
  }

  /** The cells between the ghost cells. */
  DeviceBuffer cells() {
    return cells;
  }

  /** The cells with the ghost cells. */
  DeviceBuffer all() {
    return all;
  }

  DeviceBuffer leftGhost() {
    return leftGhost;
  }

  DeviceBuffer first() {
    return first;
  }

  DeviceBuffer last() {
    return last;
  }

  DeviceBuffer rightGhost() {
    return rightGhost;
  }

  @Override
  public void close() {
    all.close();
  }
}
