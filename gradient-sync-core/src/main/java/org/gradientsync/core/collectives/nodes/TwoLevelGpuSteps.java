package org.gradientsync.core.collectives.nodes;

/**
 * When the chunks of one shard pass along the nodes. Time is counted in steps, the same on all
 * nodes. The node with number k adds its contributions to chunk c in step c + k. The last node gets
 * the result, which returns and is at node k in step c + 2(M-1) - k, for M nodes. A step begins
 * with the messages: in each direction of each link one chunk at most. So all links are busy at the
 * same time, and no two sums are at a node longer than one step.
 *
 * @param nodes the number of nodes, 2 or more
 */
record TwoLevelGpuSteps(int chunks, int nodes, int node) {
  static final int NONE = -1;

  int count() {
    return chunks + 2 * (nodes - 1);
  }

  /** The chunk to which this node adds, after the messages of the step; or {@link #NONE}. */
  int added(int step) {
    return chunk(step - node);
  }

  /** The chunk whose sum comes from the node before, or {@link #NONE}. */
  int sumReceived(int step) {
    return isFirst() ? NONE : added(step);
  }

  /** The chunk whose sum goes to the node after, or {@link #NONE}. */
  int sumSent(int step) {
    return isLast() ? NONE : added(step - 1);
  }

  /** The chunk whose result comes from the node after, or {@link #NONE}. */
  int resultReceived(int step) {
    return isLast() ? NONE : result(step);
  }

  /** The chunk whose result goes to the node before, or {@link #NONE}. */
  int resultSent(int step) {
    return isFirst() ? NONE : result(step - 1);
  }

  boolean isFirst() {
    return node == 0;
  }

  boolean isLast() {
    return node == nodes - 1;
  }

  private int result(int step) {
    return chunk(step - 2 * (nodes - 1) + node);
  }

  private int chunk(int number) {
    return number >= 0 && number < chunks ? number : NONE;
  }
}
