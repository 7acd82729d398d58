package org.gradientsync.examples.djl;

import ai.djl.ndarray.NDArray;
import java.util.ArrayList;
import java.util.List;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;

/**
 * Averages each gradient where it lies. Nothing is copied; but there is one average for each array,
 * and ranks of one node send each other messages, because they cannot see DJL's memory.
 */
final class InPlaceAverager implements Averager {
  private final GradientSync sync;
  private final List<NDArray> weights;

  /** Keeps the memory alive that the buffers lie in. */
  private final List<NDArray> gradients = new ArrayList<>();

  private final List<DeviceBuffer> buffers = new ArrayList<>();

  InPlaceAverager(GradientSync sync, List<NDArray> weights) {
    this.sync = sync;
    this.weights = weights;
  }

  /** DJL's memory as a buffer of the sync: a dense array of the CPU, of FLOAT32. */
  static DeviceBuffer wrap(GradientSync sync, NDArray array) {
    return sync.wrap(DataType.FLOAT32, array.toByteBuffer(true));
  }

  @Override
  public void average() {
    if (buffers.isEmpty()) {
      wrapGradients();
    }
    for (DeviceBuffer buffer : buffers) {
      sync.average(buffer);
    }
  }

  /**
   * PyTorch makes the gradients in the first backward pass. The later ones add to the same arrays,
   * which DJL's optimizers set to zero after each step.
   */
  private void wrapGradients() {
    for (NDArray weight : weights) {
      NDArray gradient = weight.getGradient();
      gradients.add(gradient);
      buffers.add(wrap(sync, gradient));
    }
  }

  @Override
  public void close() {
    buffers.forEach(DeviceBuffer::close);
    gradients.forEach(NDArray::close);
  }
}
