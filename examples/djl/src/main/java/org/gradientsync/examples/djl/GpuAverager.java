package org.gradientsync.examples.djl;

import ai.djl.ndarray.NDArray;
import java.util.ArrayList;
import java.util.List;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.spi.Resources;

/**
 * Averages the gradients where they lie on the GPU: a call for each, and no copy. They cannot be
 * moved into one buffer, as on the CPU: for an array on a GPU, {@code NDArray.set} copies.
 */
final class GpuAverager implements Averager {
  private final GradientSync sync;
  private final DjlArrays arrays;
  private final List<NDArray> weights;
  private final List<DeviceBuffer> gradients = new ArrayList<>();

  GpuAverager(GradientSync sync, DjlArrays arrays, List<NDArray> weights) {
    this.sync = sync;
    this.arrays = arrays;
    this.weights = weights;
  }

  @Override
  public void average() {
    // The first backward pass makes them, and they stay where they are.
    while (gradients.size() < weights.size()) {
      // Not closed: it keeps the memory alive, and goes with the model.
      NDArray gradient = weights.get(gradients.size()).getGradient();
      gradients.add(arrays.wrap(gradient));
    }
    for (DeviceBuffer gradient : gradients) {
      sync.average(gradient);
    }
  }

  @Override
  public void close() {
    Resources.closeAll(gradients);
  }
}
