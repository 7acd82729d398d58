package org.gradientsync.djl;

import ai.djl.ndarray.NDArray;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.GradientSyncException;
import org.gradientsync.spi.Resources;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Averages the gradients where they are on the GPU, without a copy. They cannot be moved into
 * buckets: for an array on a GPU, {@code NDArray.set} copies.
 */
final class GpuGradients extends Gradients {
  private static final Logger log = LoggerFactory.getLogger(GpuGradients.class);

  private final List<DeviceBuffer> buffers = new ArrayList<>();

  /**
   * For arrays that stay where they are.
   *
   * @param wrap gives an array's own memory as a buffer
   */
  GpuGradients(
      GradientSync sync, List<NDArray> arrays, Function<NDArray, ? extends DeviceBuffer> wrap) {
    super(sync, arrays);
    for (NDArray array : arrays) {
      buffers.add(wrap.apply(array));
    }
  }

  @Override
  void average() {
    sync.grouped(() -> buffers.forEach(sync::average)); // small ones in one call
  }

  @Override
  public void close() {
    Resources.closeAll(buffers);
    try {
      sync.barrier(); // now no rank works in another's gradients any more
    } catch (GradientSyncException e) {
      log.debug("rank {} does not wait for the others: training has failed", sync.rank(), e);
    }
  }
}
