package org.gradientsync.cuda.compute;

import java.nio.ByteBuffer;
import java.util.List;
import jcuda.Pointer;
import org.gradientsync.core.backend.HostBuffers;
import org.gradientsync.cuda.CudaBuffer;
import org.gradientsync.cuda.CudaDevice;
import org.gradientsync.cuda.internal.driver.CudaApi;

/** A kernel's arguments in memory, laid out as the driver reads them. The caller holds a lock. */
final class KernelArguments {
  private final CudaDevice device;
  private final String kernel;
  private final List<KernelParameter> parameters;
  private final int[] offsets;
  private final ByteBuffer memory;
  private final Pointer pointers;

  KernelArguments(CudaDevice device, CudaApi api, String kernel, List<KernelParameter> parameters) {
    this.device = device;
    this.kernel = kernel;
    this.parameters = parameters;
    offsets = new int[parameters.size()];
    int end = 0;
    for (int i = 0; i < offsets.length; i++) {
      int bytes = parameters.get(i).bytes();
      int alignment = Math.max(1, Math.min(Long.BYTES, Integer.lowestOneBit(bytes)));
      offsets[i] = (end + alignment - 1) / alignment * alignment;
      end = offsets[i] + bytes;
    }
    memory = HostBuffers.allocate(Math.max(Long.BYTES, end));
    pointers = offsets.length == 0 ? null : api.arguments(memory, offsets);
  }

  /** Pointers to the arguments, for the driver; null if there are none. */
  Pointer pointers() {
    return pointers;
  }

  int size() {
    return offsets.length;
  }

  void requireCount(int given) {
    if (given != offsets.length) {
      throw new IllegalArgumentException(
          "wrong number of kernel arguments: kernel=%s, given=%s, expected=%s"
              .formatted(kernel, given, offsets.length));
    }
  }

  void put(int index, Object value) {
    if (value instanceof CudaBuffer buffer) {
      put(index, buffer);
    } else if (value instanceof Integer i) {
      put(index, i.intValue());
    } else if (value instanceof Long l) {
      put(index, l.longValue());
    } else if (value instanceof Float f) {
      put(index, f.floatValue());
    } else if (value instanceof Double d) {
      put(index, d.doubleValue());
    } else if (value instanceof Short s && takesInteger(index, Short.BYTES)) {
      memory.putShort(offsets[index], s);
    } else if (value instanceof Byte b && takesInteger(index, Byte.BYTES)) {
      memory.put(offsets[index], b);
    } else {
      throw wrongKind(index, value == null ? "null" : value.getClass().getName());
    }
  }

  void put(int index, CudaBuffer buffer) {
    if (!takesInteger(index, Long.BYTES)) {
      throw wrongKind(index, CudaBuffer.class.getName());
    }
    if (buffer.device() != device) {
      throw new IllegalArgumentException(
          "kernel argument belongs to another device: kernel=%s, index=%s, buffer=%s, device=%s"
              .formatted(kernel, index, buffer.device(), device));
    }
    memory.putLong(offsets[index], buffer.address());
  }

  void put(int index, int value) {
    if (!takesInteger(index, Integer.BYTES)) {
      throw wrongKind(index, Integer.class.getName());
    }
    memory.putInt(offsets[index], value);
  }

  void put(int index, long value) {
    if (!takesInteger(index, Long.BYTES)) {
      throw wrongKind(index, Long.class.getName());
    }
    memory.putLong(offsets[index], value);
  }

  void put(int index, float value) {
    if (!takesFloating(index, Float.BYTES)) {
      throw wrongKind(index, Float.class.getName());
    }
    memory.putFloat(offsets[index], value);
  }

  void put(int index, double value) {
    if (!takesFloating(index, Double.BYTES)) {
      throw wrongKind(index, Double.class.getName());
    }
    memory.putDouble(offsets[index], value);
  }

  private boolean takesInteger(int index, int bytes) {
    return parameter(index).takesInteger(bytes);
  }

  private boolean takesFloating(int index, int bytes) {
    return parameter(index).takesFloating(bytes);
  }

  private KernelParameter parameter(int index) {
    if (index < 0 || index >= offsets.length) {
      throw new IndexOutOfBoundsException(
          "no such kernel argument: kernel=%s, index=%s, count=%s"
              .formatted(kernel, index, offsets.length));
    }
    return parameters.get(index);
  }

  private IllegalArgumentException wrongKind(int index, String kind) {
    return new IllegalArgumentException(
        "a kernel argument of the wrong kind: kernel=%s, index=%s, class=%s, expected=%s"
            .formatted(kernel, index, kind, parameters.get(index)));
  }
}
