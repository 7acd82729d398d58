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

    /** Expects the result from the next node, if there is one. */
    void expectResult(int chunk);

    /** Whether no result is expected for this chunk, or it has been received. */
    boolean isResultThere(int chunk);

    /** Shows the result to this node, and sends it to the node before, if there is one. */
    void returnResult(int chunk);

    /** Whether there is no node before, or the result has been sent to it. */
    boolean isResultReturned(int chunk);
  }

  private final ChunkOrder order;
  private final int chunks;
  private final int slots;
  private final int window; // sums that may be under way without their results
  private final Steps steps;
  private final boolean[] isAdded;
  private int posted; // receives of sums
  private int added; // sums
  private int sent; // sums
  private int expected; // receives of results
  private int results; // complete chunks
  private int returned; // results that were sent back

  /**
   * @param slots the number of chunks whose sums the carrier can hold at the same time
   */
  RunningSum(ChunkOrder order, int slots, Steps steps) {
    this.order = order;
    this.slots = slots;
    this.steps = steps;
    chunks = order.chunks();
    window = order.window();
    isAdded = new boolean[chunks];
  }

  /** Begins anew. */
  void begin() {
    posted = 0;
    added = 0;
    sent = 0;
    expected = 0;
    results = 0;
    returned = 0;
    Arrays.fill(isAdded, false);
  }

  /**
   * Takes the steps that are possible, at most one of them an addition. Returns whether any was.
   */
  boolean advance() {
    int before = progress();
    while (posted < chunks && posted - sent < slots && posted - results < window) {
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
    while (hasResult()) {
      steps.returnResult(order.result(results++));
    }
    while (isNextReturned()) {
      returned++;
    }
    return progress() > before;
  }

  private int progress() {
    return posted + added + sent + expected + results + returned;
  }

  private boolean canAdd() {
    return added < posted && steps.isSumThere(order.sum(added));
  }

  private boolean isNextSent() {
    return sent < added && steps.isSumSent(order.sum(sent));
  }

  private boolean hasResult() {
    return results < expected && steps.isResultThere(order.result(results));
  }

  private boolean isNextReturned() {
    return returned < results && steps.isResultReturned(order.result(returned));
  }

  /** Whether what has begun lets {@link #advance} take a step. */
  boolean canAdvance() {
    return canAdd() || isNextSent() || hasResult() || isNextReturned();
  }

  boolean isDone() {
    return hasAllResults() && hasSentAll() && returned == chunks;
  }

  /** The oldest chunk whose sum is added and not sent, or -1. */
  int sending() {
    return sent < added ? order.sum(sent) : -1;
  }

  /** Whether a result is missing that another node is to return. */
  boolean isExpectingResult() {
    return results < expected;
  }

  /** Whether a sum of the nodes before is missing. */
  boolean isExpectingSum() {
    return added < posted;
  }

  boolean hasSentAll() {
    return sent == chunks;
  }

  boolean hasAllResults() {
    return results == chunks;
  }

  /** The number of results that are there. */
  int results() {
    return results;
  }
}
