package org.gradientsync.djl;

import ai.djl.ndarray.NDArray;
import java.nio.ByteBuffer;
import java.util.List;
import org.gradientsync.GradientBuckets;
import org.gradientsync.GradientSync;

/** Copies the gradients into buckets and back, wherever either are. */
final class CopiedGradients extends Gradients {
  private final List<String> names;
  private final GradientBuckets buckets;

  CopiedGradients(
      GradientSync sync, List<String> names, List<NDArray> arrays, GradientBuckets buckets) {
    super(sync, arrays);
    this.names = names;
    this.buckets = buckets;
  }

  @Override
  void average() {
    for (int i = buckets.size() - 1; i >= 0; i--) {
      buckets.gradient(i).copyFrom(HostCopy.read(names.get(i), arrays.get(i)));
      buckets.ready(i);
    }
    buckets.finish(
        i -> {
          ByteBuffer average = HostCopy.read(names.get(i), arrays.get(i));
          buckets.gradient(i).copyTo(average);
          HostCopy.write(average, arrays.get(i));
        });
  }

  @Override
  public void close() {
    buckets.close();
  }
}
