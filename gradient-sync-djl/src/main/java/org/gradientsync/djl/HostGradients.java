package org.gradientsync.djl;

import ai.djl.ndarray.NDArray;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;
import org.gradientsync.GradientBuckets;
import org.gradientsync.GradientSync;
import org.gradientsync.spi.Resources;

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

  /** The reason, with the first parameter that is too large; null if all gradients can be moved. */
  static String whyNotMoved(List<String> names, List<NDArray> gradients) {
    for (int i = 0; i < gradients.size(); i++) {
      long bytes = HostCopy.sizeInBytes(gradients.get(i));
      if (bytes > MOST_BYTES) {
        return "a gradient is too large for one bucket: parameter=%s, bytes=%s, most=%s"
            .formatted(names.get(i), bytes, MOST_BYTES);
      }
    }
    return null;
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
    Resources.closeAll(this::moveBack, buckets);
  }

  private void moveBack() {
    for (int i = 0; i < arrays.size(); i++) {
      NDArray gradient = arrays.get(i);
      int bytes = Math.toIntExact(HostCopy.sizeInBytes(gradient));
      ByteBuffer own = ByteBuffer.allocateDirect(bytes).order(ByteOrder.nativeOrder());
      if (buckets.gradient(i).isClosed()) {
        gradient.set(own); // the sync was closed first, and the memory is gone
      } else {
        move(gradient, own);
      }
    }
  }
}
