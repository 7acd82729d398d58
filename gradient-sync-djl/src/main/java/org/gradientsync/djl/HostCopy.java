package org.gradientsync.djl;

import ai.djl.Device;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.gradientsync.DataType;

/** Copies between DJL's arrays and this library's buffers, through host memory. */
final class HostCopy {
  /** The largest array of bytes that a JVM has. */
  private static final long MOST_BYTES = Integer.MAX_VALUE - 8;

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

  /** The library's type for a parameter's gradients. */
  static DataType gradientTypeOf(String parameter, NDArray gradient) {
    DataType type = typeOf(gradient);
    if (type == null) {
      throw new IllegalStateException(
          "gradients of this type cannot be averaged: parameter=%s, type=%s; freeze the parameter"
              .formatted(parameter, gradient.getDataType()));
    }
    return type;
  }

  /** A copy of the elements of a parameter or its gradient. */
  static ByteBuffer read(String parameter, NDArray source) {
    if (sizeInBytes(source) > MOST_BYTES) {
      throw new IllegalStateException(
          ("parameter is too large to be copied through host memory:"
                  + " parameter=%s, bytes=%s, most=%s; divide it into several parameters")
              .formatted(parameter, sizeInBytes(source), MOST_BYTES));
    }
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
