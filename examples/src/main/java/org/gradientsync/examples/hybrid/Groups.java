package org.gradientsync.examples.hybrid;

import org.gradientsync.GradientSync;

/** A rank's three groups. A rank has the same place in a group as along that axis of the grid. */
final class Groups implements AutoCloseable {
  private final GradientSync tensor;
  private final GradientSync data;
  private final GradientSync pipeline;

  /** Splits the sync of all ranks. Collective. */
  Groups(GradientSync all, Grid grid) {
    int tensorRank = grid.tensorRank(all.rank());
    int dataRank = grid.dataRank(all.rank());
    int stage = grid.stage(all.rank());
    // A group is named by its first rank, which is different for each group of one kind.
    tensor = all.split(grid.rank(stage, dataRank, 0), tensorRank);
    data = all.split(grid.rank(stage, 0, tensorRank), dataRank);
    pipeline = all.split(grid.rank(0, dataRank, tensorRank), stage);
  }

  /** The ranks that share this rank's layers and rows. */
  GradientSync tensor() {
    return tensor;
  }

  /** The ranks that have the same weights and other rows. */
  GradientSync data() {
    return data;
  }

  /** The stages through which this rank's rows go. */
  GradientSync pipeline() {
    return pipeline;
  }

  @Override
  public void close() {
    pipeline.close();
    data.close();
    tensor.close();
  }
}
