package org.gradientsync.djl;

import ai.djl.ndarray.NDArray;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;
import org.gradientsync.GradientBuckets;
import org.gradientsync.GradientSync;

/** DJL's gradients, moved into the buckets: nothing is copied in a step. */
final class HostGradients extends Gradients {
  /**
   * A bucket of up to 1 GiB has its memory in one piece, and begins with up to 25 MiB of others.
   */
  private static final long MOST_BYTES = 960L << 20;

  private final GradientBuckets buckets;

  HostGradients(GradientSync sync, List<NDArray> arrays, GradientBuckets buckets) {
    super(sync, arrays);
    this.buckets = buckets;
    for (int i = 0; i < arrays.size(); i++) {
      move(arrays.get(i), buckets.gradient(i).hostMemory());
    }
  }

  static boolean canMove(NDArray gradient) {
    return HostCopy.sizeInBytes(gradient) <= MOST_BYTES;
  }

  /** From now on PyTorch has the array there. The array is not closed: it holds the memory. */
  private static void move(NDArray gradient, ByteBuffer target) {
    target.duplicate().put(gradient.toByteBuffer(true));
    gradient.set(target);
  }

  @Override
  void average() {
    for (int i = buckets.size() - 1; i >= 0; i--) {
      buckets.ready(i);
    }
    buckets.finish();
  }

  /** The model may be trained again, so its gradients must not lie where nothing is any more. */
  @Override
  public void close() {
    for (NDArray gradient : arrays) {
      int bytes = Math.toIntExact(HostCopy.sizeInBytes(gradient));
      move(gradient, ByteBuffer.allocateDirect(bytes).order(ByteOrder.nativeOrder()));
    }
    buckets.close();
  }
}
