package org.gradientsync.core.collectives.nodes;

import java.util.Arrays;

/**
 * The order of the steps in which a rank reduces the columns of its shard with its peers on other
 * nodes and gathers the results. The first step of a column needs nothing but this node; each other
 * one handles what comes in a round of messages. Several columns are under way at the same time.
 * Each step handles the columns in their order, so the messages of two peers match. Only decides
 * and counts: {@link BlocksPlan} takes the steps.
 */
final class ColumnSteps {
  /** The number of columns under way, which hides what one waits for behind the work on others. */
  static final int SLOTS = 4;

  /** What happens to a column. What a step begins may take time. */
  interface Steps {
    /** Expects what comes to be reduced. */
    void expect(int column);

    /** Whether what it needs for a step has come; not asked for the first one. */
    boolean hasCome(int column, int step);

    /** Takes a step. */
    void take(int column, int step);

    /** Whether all that it sends is sent; after its last step. */
    boolean isSent(int column);
  }

  private final int columns;
  private final Steps steps;
  private final int[] taken; // columns, by step
  private int expected; // columns
  private int left; // columns whose slots are free again

  /**
   * @param rounds the number of rounds of messages
   */
  ColumnSteps(int columns, int rounds, Steps steps) {
    this.columns = columns;
    this.steps = steps;
    taken = new int[1 + rounds];
  }

  /** Begins anew. */
  void begin() {
    Arrays.fill(taken, 0);
    expected = 0;
    left = 0;
  }

  /** Takes one step, if one is possible. Returns whether any was. */
  boolean advance() {
    int before = expected + left;
    while (left < taken[taken.length - 1] && steps.isSent(left)) {
      left++;
    }
    while (expected < columns && expected - left < SLOTS) {
      steps.expect(expected++);
    }
    for (int step = taken.length - 1; step >= 0; step--) {
      if (isPossible(step)) {
        steps.take(taken[step], step);
        taken[step]++;
        return true;
      }
    }
    return expected + left > before;
  }

  private boolean isPossible(int step) {
    return step == 0
        ? taken[0] < expected
        : taken[step] < taken[step - 1] && steps.hasCome(taken[step], step);
  }

  /** Whether what has begun lets {@link #advance} take a step. */
  boolean canAdvance() {
    for (int step = 0; step < taken.length; step++) {
      if (isPossible(step)) {
        return true;
      }
    }
    return left < taken[taken.length - 1] && steps.isSent(left);
  }

  boolean isDone() {
    return left == columns;
  }

  /** The oldest column that is not complete, if any is not. */
  int oldest() {
    return taken[taken.length - 1];
  }

  /** The oldest column whose slots are in use, or the last one. */
  int left() {
    return Math.min(left, columns - 1);
  }

  /** The step for which the oldest column that is not complete waits, or -1 if all are. */
  int awaited() {
    int oldest = taken[taken.length - 1];
    for (int step = 0; step < taken.length && oldest < columns; step++) {
      if (taken[step] == oldest) {
        return step;
      }
    }
    return -1;
  }

  /**
   * The number of halves of columns whose results are there, in the order of columns: first all
   * that have come before the last round, then those of the last one.
   */
  int halves() {
    int complete = taken[taken.length - 1];
    return 2 * complete + (taken[taken.length - 2] > complete ? 1 : 0);
  }
}
