package org.gradientsync.core.buckets;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.gradientsync.Parameter;

/**
 * The gradients that are ready in the current step, and the order in which they became ready in the
 * first one.
 */
public final class Readiness {
  private static final int MAX_NAMES = 20; // in an error text

  private final List<Parameter> parameters;
  private final int rank;
  private final boolean[] ready; // in this step
  private final boolean[] kept; // in this step, or within noSync() since the last average
  private final int[] order;
  private int count;
  private boolean orderFixed;

  /** Assumes the order of a backward pass: the reverse order of the parameters. */
  Readiness(List<Parameter> parameters, int rank) {
    this.parameters = parameters;
    this.rank = rank;
    ready = new boolean[parameters.size()];
    kept = new boolean[parameters.size()];
    order = new int[parameters.size()];
    for (int i = 0; i < order.length; i++) {
      order[i] = order.length - 1 - i;
    }
  }

  /** Returns the index of a parameter, or throws if there is none. */
  int require(int parameter) {
    if (parameter < 0 || parameter >= ready.length) {
      throw new IndexOutOfBoundsException(
          "no such parameter: parameter=%s, count=%s, rank=%s"
              .formatted(parameter, ready.length, rank));
    }
    return parameter;
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

  /**
   * Marks a gradient as ready in this step.
   *
   * @param has false if this rank has none, and gives zeros
   */
  void add(int parameter, boolean has) {
    if (ready[parameter]) {
      throw new IllegalStateException(
          ("gradient is ready already: parameter=%s, rank=%s; call finish() at the end of each"
                  + " step, noSync() to add several steps up, and discard() to give a step up")
              .formatted(parameters.get(parameter), rank));
    }
    ready[parameter] = true;
    kept[parameter] |= has;
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

  /** Whether no gradient is ready in this step, nor was within noSync(). */
  boolean isNoneKept() {
    for (boolean one : kept) {
      if (one) {
        return false;
      }
    }
    return true;
  }

  /** The exception for gradients that are not ready, nor were within noSync(); null without any. */
  IllegalStateException missing() {
    List<Parameter> missing = new ArrayList<>();
    for (int i = 0; i < kept.length; i++) {
      if (!kept[i]) {
        missing.add(parameters.get(i));
      }
    }
    if (missing.isEmpty()) {
      return null;
    }
    String names =
        missing.size() > MAX_NAMES
            ? missing.subList(0, MAX_NAMES) + " and " + (missing.size() - MAX_NAMES) + " more"
            : missing.toString();
    boolean all = isNoneKept();
    return new IllegalStateException(
        (all ? "no gradient is ready" : "gradients are not ready")
            + ": missing="
            + names
            + ", rank="
            + rank
            + (all
                ? "; call finish() once in each step, after ready() for each parameter"
                : "; call ready() for each")
            + ", or build with missing(Missing.ZERO)");
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
