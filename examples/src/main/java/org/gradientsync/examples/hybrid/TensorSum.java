package org.gradientsync.examples.hybrid;

import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.ReduceOp;

/** Adds up the contributions of the ranks of a tensor group. */
final class TensorSum implements AutoCloseable {
  private final GradientSync tensor;
  private final DeviceBuffer buffer;

  /**
   * @param count the number of elements of each sum
   */
  TensorSum(GradientSync tensor, long count) {
    this.tensor = tensor;
    buffer = tensor.allocate(DataType.FLOAT64, count).named("tensor-parallel sum");
  }

  /** Replaces each element with its sum over the group: the same bits on all its ranks. */
  void sum(double[] elements) {
    if (tensor.size() > 1) {
      buffer.copyFrom(elements);
      tensor.allReduce(buffer, ReduceOp.SUM);
      buffer.copyTo(elements);
    }
  }

  int rank() {
    return tensor.rank();
  }

  int size() {
    return tensor.size();
  }

  @Override
  public void close() {
    buffer.close();
  }
}
