package org.gradientsync.core.collectives.nodes;

import java.util.Arrays;

/**
 * The order of the steps in which a rank takes the chunks of its shard's running sum from the node
 * before, adds its own node's contributions, passes the sums on to the next node, and returns the
 * results. Only decides and counts: {@link SumPlan} takes the steps, with its buffers and messages.
 */
final class RunningSum {
  /** What happens to a chunk. Each step begins at once; what it begins may take time. */
  interface Steps {
    /** Expects the sum of the nodes before, if there are any. */
    void expectSum(int chunk);

    /** Whether no sum is expected for this chunk, or it has been received. */
    boolean isSumThere(int chunk);

    /** Adds this node's contributions, and sends the sum to the next node, if there is one. */
    void add(int chunk);

    /** Whether there is no next node, or the sum has been sent to it. */
    boolean isSumSent(int chunk);

    /** Expects the result from another node, if it is not complete here. */
    void expectResult(int chunk);

    /** Whether no result is expected for this chunk, or it has been received. */
    boolean isResultThere(int chunk);

    /** Shows the result to this node, and sends it to the nodes that get it from here, if any. */
    void returnResult(int chunk);

    /** Whether the result has been sent to all of them. */
    boolean isResultReturned(int chunk);
  }

  private final ChunkOrder order;
  private final int chunks;
  private final int slots;
  private final int window; // sums that may be under way without their results
  private final int lanes; // in each of which results come in order
  private final Steps steps;
  private final boolean[] isAdded;
  private int posted; // receives of sums
  private int added; // sums
  private int sent; // sums
  private int expected; // receives of results
  private final int[] results; // complete chunks of each lane
  private final int[] returned; // results of each lane that were sent back

  /**
   * @param slots the number of chunks whose sums the carrier can hold at the same time
   */
  RunningSum(ChunkOrder order, int slots, Steps steps) {
    this.order = order;
    this.slots = slots;
    this.steps = steps;
    chunks = order.chunks();
    window = order.window();
    lanes = order.lanes();
    results = new int[lanes];
    returned = new int[lanes];
    isAdded = new boolean[chunks];
  }

  /** Begins anew. */
  void begin() {
    posted = 0;
    added = 0;
    sent = 0;
    expected = 0;
    Arrays.fill(results, 0);
    Arrays.fill(returned, 0);
    Arrays.fill(isAdded, false);
  }

  /**
   * Takes the steps that are possible, at most one of them an addition. Returns whether any was.
   */
  boolean advance() {
    int before = progress();
    while (posted < chunks && posted - sent < slots && posted - results() < window) {
      steps.expectSum(order.sum(posted++));
    }
    if (canAdd()) {
      int chunk = order.sum(added++);
      steps.add(chunk);
      isAdded[chunk] = true; // so its result may overwrite it
    }
    while (isNextSent()) {
      sent++;
    }
    while (expected < chunks && isAdded[order.result(expected)]) {
      steps.expectResult(order.result(expected++));
    }
    for (int lane = 0; lane < lanes; lane++) {
      while (hasResult(lane)) {
        results[lane]++;
        steps.returnResult(chunk(lane, results[lane] - 1));
      }
      while (isNextReturned(lane)) {
        returned[lane]++;
      }
    }
    return progress() > before;
  }

  private int progress() {
    int progress = posted + added + sent + expected;
    for (int lane = 0; lane < lanes; lane++) {
      progress += results[lane] + returned[lane];
    }
    return progress;
  }

  /** The chunk after so many of a lane. */
  private int chunk(int lane, int number) {
    return order.result(lane + lanes * number);
  }

  private boolean canAdd() {
    return added < posted && steps.isSumThere(order.sum(added));
  }

  private boolean isNextSent() {
    return sent < added && steps.isSumSent(order.sum(sent));
  }

  private boolean hasResult(int lane) {
    return lane + lanes * results[lane] < expected
        && steps.isResultThere(chunk(lane, results[lane]));
  }

  private boolean isNextReturned(int lane) {
    return returned[lane] < results[lane] && steps.isResultReturned(chunk(lane, returned[lane]));
  }

  /** Whether what has begun lets {@link #advance} take a step. */
  boolean canAdvance() {
    for (int lane = 0; lane < lanes; lane++) {
      if (hasResult(lane) || isNextReturned(lane)) {
        return true;
      }
    }
    return canAdd() || isNextSent();
  }

  boolean isDone() {
    return hasAllResults() && hasSentAll() && returning() < 0;
  }

  /** The oldest chunk whose sum is added and not sent, or -1. */
  int sending() {
    return sent < added ? order.sum(sent) : -1;
  }

  /** The first chunk whose result is expected and has not come, or -1. */
  int awaitedResult() {
    int first = results();
    return first < expected ? order.result(first) : -1;
  }

  /** A chunk whose result is there and not yet sent to all nodes that get it from here, or -1. */
  int returning() {
    for (int lane = 0; lane < lanes; lane++) {
      if (returned[lane] < results[lane]) {
        return chunk(lane, returned[lane]);
      }
    }
    return -1;
  }

  /** Whether a sum of the nodes before is missing. */
  boolean isExpectingSum() {
    return added < posted;
  }

  boolean hasSentAll() {
    return sent == chunks;
  }

  boolean hasAllResults() {
    return results() == chunks;
  }

  /** The number of chunks, in the order of results, up to the first whose result is missing. */
  int results() {
    int first = chunks;
    for (int lane = 0; lane < lanes; lane++) {
      first = Math.min(first, lane + lanes * results[lane]);
    }
    return first;
  }
}
