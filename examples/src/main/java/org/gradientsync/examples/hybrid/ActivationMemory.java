package org.gradientsync.examples.hybrid;

import java.util.List;

/** Counts the memory of the activations that a stage keeps for its backward passes. */
final class ActivationMemory {
  private long elements;
  private long most;

  void keep(double[] input) {
    add(input.length);
  }

  void keep(List<LayerPair.Activations> activations) {
    add(count(activations));
  }

  void release(double[] input) {
    add(-input.length);
  }

  void release(List<LayerPair.Activations> activations) {
    add(-count(activations));
  }

  private void add(long change) {
    elements += change;
    most = Math.max(most, elements);
  }

  private static long count(List<LayerPair.Activations> activations) {
    return activations.stream().mapToLong(a -> (long) a.input().length + a.hidden().length).sum();
  }

  long bytesNow() {
    return elements * Double.BYTES;
  }

  /** Returns the most bytes at any time. */
  long mostBytes() {
    return most * Double.BYTES;
  }

  /** Computes the {@link #mostBytes} of the stage that needs the most. */
  static long mostBytes(HybridSettings settings, boolean recompute) {
    Model model = settings.model();
    int stages = settings.grid().pipeline();
    long input = (long) settings.rows() * model.width();
    long most = 0;
    for (int stage = 0; stage < stages; stage++) {
      int pairs = model.firstPair(stage + 1, stages) - model.firstPair(stage, stages);
      long all = pairs * (input + input / settings.grid().tensor());
      long inFlight = Schedule.inFlight(stage, stages, settings.microBatches());
      most = Math.max(most, recompute ? (inFlight - 1) * input + all : inFlight * all);
    }
    return most * Double.BYTES;
  }
}
