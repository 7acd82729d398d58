package org.gradientsync.examples.hybrid;

/**
 * What to train, and how. All ranks have the same.
 *
 * @param grid the places of the ranks
 * @param model what is trained
 * @param batch the rows of a step, on all data ranks together
 * @param microBatches the parts into which a data rank divides its rows of a step
 * @param accumulate the steps whose gradients are added up for an update
 * @param rate the learning rate
 * @param recompute whether to keep only the inputs of a stage for the backward pass
 */
public record HybridSettings(
    Grid grid,
    Model model,
    int batch,
    int microBatches,
    int accumulate,
    double rate,
    boolean recompute) {
  /** {@return the number of rows of a micro-batch} */
  public int rows() {
    return batch / (grid.data() * microBatches);
  }

  /** Returns the number of a micro-batch's first row, over all steps. */
  long firstRow(long step, int dataRank, int microBatch) {
    return ((step * grid.data() + dataRank) * microBatches + microBatch) * rows();
  }

  /** Returns whether the weights are updated after this step. */
  boolean updatesAfter(long step) {
    return (step + 1) % accumulate == 0;
  }
}
