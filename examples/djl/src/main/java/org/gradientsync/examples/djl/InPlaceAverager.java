package org.gradientsync.examples.djl;

import ai.djl.ndarray.NDArray;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;

/**
 * Averages the gradients where they lie: DJL's arrays are moved into one buffer, which PyTorch then
 * writes. Nothing is copied in a step; but ranks of one node send each other messages, because they
 * cannot see memory that the sync has not allocated.
 */
final class InPlaceAverager implements Averager {
  private final GradientSync sync;
  private final List<NDArray> weights;
  private DeviceBuffer gradients;

  InPlaceAverager(GradientSync sync, List<NDArray> weights) {
    this.sync = sync;
    this.weights = weights;
  }

  @Override
  public void average() {
    if (gradients == null) {
      gradients = sync.wrap(DataType.FLOAT32, moveTogether());
    }
    sync.average(gradients);
  }

  /**
   * Only after a backward pass: the first one makes the gradients. The later ones add to the same
   * arrays, which DJL's optimizers set to zero after each step, so they stay where they are now.
   */
  private ByteBuffer moveTogether() {
    int bytes = weights.stream().mapToInt(InPlaceAverager::sizeInBytes).sum();
    ByteBuffer all = ByteBuffer.allocateDirect(bytes).order(ByteOrder.nativeOrder());
    int offset = 0;
    for (NDArray weight : weights) {
      ByteBuffer part = all.slice(offset, sizeInBytes(weight)).order(ByteOrder.nativeOrder());
      // Not closed: it keeps the memory alive, and goes with the model.
      NDArray gradient = weight.getGradient();
      part.duplicate().put(gradient.toByteBuffer(true));
      gradient.set(part);
      offset += part.capacity();
    }
    return all;
  }

  private static int sizeInBytes(NDArray array) {
    return Math.toIntExact(array.size() * Float.BYTES);
  }

  @Override
  public void close() {
    if (gradients != null) {
      gradients.close();
    }
  }
}
