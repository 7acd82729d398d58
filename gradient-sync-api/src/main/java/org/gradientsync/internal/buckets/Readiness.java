package org.gradientsync.internal.buckets;

import java.util.Arrays;

/** Which gradients of a step are there, and in which order they came in the first one. */
public final class Readiness {
  private final boolean[] ready; // in this step
  private final boolean[] kept; // in it, or without sync since the last average
  private final int[] order;
  private int count;
  private boolean ordered;

  /** Expects them in the reverse order of the parameters, as the backward pass goes. */
  Readiness(int parameters) {
    ready = new boolean[parameters];
    kept = new boolean[parameters];
    order = new int[parameters];
    for (int i = 0; i < parameters; i++) {
      order[i] = parameters - 1 - i;
    }
  }

  /** Forgets the last step. */
  void begin() {
    Arrays.fill(ready, false);
    Arrays.fill(kept, false);
    count = 0;
  }

  /** A gradient has come that is not to be averaged yet. */
  void keep(int parameter) {
    kept[parameter] = true;
  }

  /** A gradient has come. */
  void add(int parameter) {
    ready[parameter] = true;
    kept[parameter] = true;
    if (!ordered) {
      order[count] = parameter;
    }
    count++;
  }

  boolean has(int parameter) {
    return ready[parameter];
  }

  /** Whether it has come, or was kept. */
  boolean hasKept(int parameter) {
    return kept[parameter];
  }

  /** Whether none has come: a kept one has not. */
  boolean isEmpty() {
    return count == 0;
  }

  boolean isComplete() {
    return count == ready.length;
  }

  /** All have come once; their order is not looked at any more. */
  void ordered() {
    ordered = true;
  }

  boolean isOrdered() {
    return ordered;
  }

  /** The parameters' numbers, the one that came first at the front; may be written. */
  int[] order() {
    return order;
  }
}
