package org.gradientsync.djl;

import ai.djl.ndarray.NDArray;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BiFunction;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.spi.BackendDevice;
import org.gradientsync.spi.Resources;

/**
 * Averages the gradients where they are on the GPU, without a copy. They cannot be moved into
 * buckets: for an array on a GPU, {@code NDArray.set} copies.
 */
final class GpuGradients extends Gradients {
  private final List<DeviceBuffer> buffers = new ArrayList<>();

  /**
   * For arrays that stay where they are.
   *
   * @param names of the parameters
   * @param wrap gives the own memory of a parameter's array as a buffer
   */
  GpuGradients(
      GradientSync sync,
      List<String> names,
      List<NDArray> arrays,
      BiFunction<String, NDArray, ? extends DeviceBuffer> wrap) {
    super(sync, arrays);
    for (int i = 0; i < arrays.size(); i++) {
      buffers.add(wrap.apply(names.get(i), arrays.get(i)).named(names.get(i)));
    }
  }

  @Override
  void average() {
    sync.grouped(() -> buffers.forEach(sync::average)); // small ones in one call
  }

  @Override
  void await() {
    ((BackendDevice) sync.device()).await(buffers.get(0)); // all are on one stream
  }

  /** After it, no rank works in another's gradients any more. */
  @Override
  public void close() {
    Resources.closeAll(() -> Resources.closeAll(buffers), sync::barrier);
  }
}
