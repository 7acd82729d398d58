package org.gradientsync.djl;

import ai.djl.Device;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.gradientsync.DataType;

/** Copies between DJL's arrays and this library's buffers, through host memory. */
final class HostCopy {
  private HostCopy() {}

  /** The library's type for an array's elements, or null. */
  static DataType typeOf(NDArray array) {
    return switch (array.getDataType()) {
      case FLOAT16 -> DataType.FLOAT16;
      case BFLOAT16 -> DataType.BFLOAT16;
      case FLOAT32 -> DataType.FLOAT32;
      case FLOAT64 -> DataType.FLOAT64;
      case INT32 -> DataType.INT32;
      case INT64 -> DataType.INT64;
      default -> null;
    };
  }

  static long sizeInBytes(NDArray array) {
    return array.size() * array.getDataType().getNumOfBytes();
  }

  /** A copy of the elements. */
  static ByteBuffer read(NDArray source) {
    return ByteBuffer.wrap(source.toByteArray()).order(ByteOrder.nativeOrder());
  }

  static void write(ByteBuffer source, NDArray target) {
    boolean trained = target.hasGradient();
    if (trained) { // PyTorch refuses to write a parameter otherwise
      target.setRequiresGradient(false);
    }
    try (NDManager scratch = target.getManager().newSubManager(Device.cpu());
        NDArray copy = scratch.create(source, target.getShape(), target.getDataType())) {
      copy.copyTo(target);
    }
    if (trained) {
      target.setRequiresGradient(true);
    }
  }
}
