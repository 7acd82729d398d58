package org.gradientsync;

/** In which order a sum over the ranks is added, which decides its rounding. */
public enum SumOrder {
  /**
   * In rank order, {@code ((g0 + g1) + g2) + ...}: the same bits wherever the ranks run, with every
   * reducer but {@code nccl}, which adds in an order of its own.
   */
  RANKS,
  /**
   * In an order that may depend on the number of ranks, on the nodes they run on and on the size of
   * the buffer. It is the same in every run of the same placement, and all ranks have the same
   * bits. On three nodes or more, less crosses the network than in rank order.
   */
  ANY
}
