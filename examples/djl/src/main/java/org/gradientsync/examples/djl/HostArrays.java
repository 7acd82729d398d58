package org.gradientsync.examples.djl;

import ai.djl.ndarray.NDArray;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;

/** DJL's arrays in host memory. */
record HostArrays(GradientSync sync) implements DjlArrays {
  @Override
  public DeviceBuffer wrap(NDArray array) {
    return sync.wrap(DataType.FLOAT32, array.toByteBuffer(true)); // a view, and no copy
  }
}
