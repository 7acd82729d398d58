package org.gradientsync.core.buckets;

import java.util.Arrays;

/**
 * The gradients that are ready in the current step, and the order in which they became ready in the
 * first one.
 */
public final class Readiness {
  private final boolean[] ready; // in this step
  private final boolean[] kept; // in this step, or within noSync() since the last average
  private final int[] order;
  private int count;
  private boolean orderFixed;

  /** Assumes the order of a backward pass: the reverse order of the parameters. */
  Readiness(int parameters) {
    ready = new boolean[parameters];
    kept = new boolean[parameters];
    order = new int[parameters];
    for (int i = 0; i < parameters; i++) {
      order[i] = parameters - 1 - i;
    }
  }

  void beginStep() {
    Arrays.fill(ready, false);
    Arrays.fill(kept, false);
    count = 0;
  }

  /** Marks a gradient as ready within noSync(). */
  void keep(int parameter) {
    kept[parameter] = true;
  }

  /** Marks a gradient as ready in this step. */
  void add(int parameter) {
    ready[parameter] = true;
    kept[parameter] = true;
    if (!orderFixed) {
      order[count] = parameter;
    }
    count++;
  }

  boolean isReady(int parameter) {
    return ready[parameter];
  }

  /** Whether the gradient is ready in this step, or was within noSync(). */
  boolean isKept(int parameter) {
    return kept[parameter];
  }

  /** Whether no gradient is ready in this step; those of noSync() do not count. */
  boolean isEmpty() {
    return count == 0;
  }

  boolean isComplete() {
    return count == ready.length;
  }

  /** Fixes the order after the first step. */
  void fixOrder() {
    orderFixed = true;
  }

  boolean isOrderFixed() {
    return orderFixed;
  }

  /** The parameters' indices in the order in which gradients become ready; writable. */
  int[] order() {
    return order;
  }
}
