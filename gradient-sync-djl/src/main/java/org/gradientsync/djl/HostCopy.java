package org.gradientsync.djl;

import ai.djl.Device;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;

/** Copies between DJL's arrays and this library's buffers, through host memory. */
final class HostCopy {
  private HostCopy() {}

  /**
   * The library's type for an array.
   *
   * @throws IllegalArgumentException if it has none
   */
  static DataType typeOf(String name, NDArray array) {
    return switch (array.getDataType()) {
      case FLOAT16 -> DataType.FLOAT16;
      case BFLOAT16 -> DataType.BFLOAT16;
      case FLOAT32 -> DataType.FLOAT32;
      case FLOAT64 -> DataType.FLOAT64;
      default ->
          throw new IllegalArgumentException(
              "no type of a gradient: parameter="
                  + name
                  + ", type="
                  + array.getDataType()
                  + "; use parameters of a floating-point type");
    };
  }

  static long sizeInBytes(NDArray array) {
    return array.size() * array.getDataType().getNumOfBytes();
  }

  /** A copy of the elements. */
  static byte[] bytes(NDArray array) {
    return array.toByteArray();
  }

  static void read(NDArray source, DeviceBuffer target) {
    target.copyFrom(ByteBuffer.wrap(bytes(source)).order(ByteOrder.nativeOrder()));
  }

  static void write(DeviceBuffer source, NDArray target) {
    int bytes = Math.toIntExact(sizeInBytes(target));
    ByteBuffer elements = ByteBuffer.allocateDirect(bytes).order(ByteOrder.nativeOrder());
    source.copyTo(elements);
    boolean trained = target.hasGradient();
    if (trained) { // PyTorch refuses to write a parameter otherwise
      target.setRequiresGradient(false);
    }
    try (NDManager scratch = target.getManager().newSubManager(Device.cpu());
        NDArray copy = scratch.create(elements, target.getShape(), target.getDataType())) {
      copy.copyTo(target);
    }
    if (trained) {
      target.setRequiresGradient(true);
    }
  }
}
