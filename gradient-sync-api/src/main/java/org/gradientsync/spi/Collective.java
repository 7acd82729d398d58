package org.gradientsync.spi;

import org.gradientsync.DeviceBuffer;

/**
 * A collective with an input and an output. Both consist of blocks of the same count and type: one
 * block, or one for each rank in rank order.
 */
public enum Collective {
  /** Every rank gets the blocks of all ranks. The input may be this rank's block of the output. */
  ALL_GATHER,

  /**
   * Rank r gets the reduction of all ranks' blocks r. The output may be this rank's block of the
   * input.
   */
  REDUCE_SCATTER,

  /** The root gets the reduction of all ranks' blocks. Input and output may be the same. */
  REDUCE,

  /** The root gets the blocks of all ranks. Its input may be its block of the output. */
  GATHER,

  /** Rank r gets block r of the root. The root's output may be its block of the input. */
  SCATTER,

  /** Rank r gets block r of all ranks. Input and output must not overlap. */
  ALL_TO_ALL;

  /**
   * Whether one rank is special.
   *
   * @return true if there is a root
   */
  public boolean hasRoot() {
    return this == REDUCE || this == GATHER || this == SCATTER;
  }

  /**
   * Whether blocks are reduced.
   *
   * @return true if there is an operation
   */
  public boolean reduces() {
    return this == REDUCE || this == REDUCE_SCATTER;
  }

  /**
   * The number of blocks of the input.
   *
   * @param ranks the number of ranks
   * @return 1 or the number of ranks
   */
  public int inputBlocks(int ranks) {
    return this == REDUCE_SCATTER || this == SCATTER || this == ALL_TO_ALL ? ranks : 1;
  }

  /**
   * The number of blocks of the output.
   *
   * @param ranks the number of ranks
   * @return 1 or the number of ranks
   */
  public int outputBlocks(int ranks) {
    return this == ALL_GATHER || this == GATHER || this == ALL_TO_ALL ? ranks : 1;
  }

  /**
   * Whether a rank has an input.
   *
   * @param rank the rank
   * @param root the root, if there is one
   * @return false only for ranks other than the root of a scatter
   */
  public boolean hasInput(int rank, int root) {
    return this != SCATTER || rank == root;
  }

  /**
   * Whether a rank has an output.
   *
   * @param rank the rank
   * @param root the root, if there is one
   * @return false only for ranks other than the root of a gather or a reduction to one rank
   */
  public boolean hasOutput(int rank, int root) {
    return this != GATHER && this != REDUCE || rank == root;
  }

  /**
   * The number of elements of a block.
   *
   * @param in this rank's input, or null
   * @param out this rank's output, or null
   * @param ranks the number of ranks
   * @return 0 or more
   */
  public long blockCount(DeviceBuffer in, DeviceBuffer out, int ranks) {
    return in != null ? in.count() / inputBlocks(ranks) : out.count() / outputBlocks(ranks);
  }
}
