package org.gradientsync.cuda;

import java.nio.ByteBuffer;
import java.util.List;
import java.util.Objects;
import jcuda.Pointer;
import jcuda.driver.CUfunction;
import org.gradientsync.host.HostBuffers;

/**
 * A kernel of a {@link CudaModule}.
 *
 * <p>Safe for use by several threads: launches of one module's kernels are enqueued one after the
 * other, and each has its own arguments.
 */
public final class CudaKernel {
  private final CudaModule module;
  private final String name;
  private final CUfunction function;
  private final List<KernelParameter> parameters;
  private final int[] offsets;
  private final ByteBuffer memory;
  private final Pointer pointers;

  CudaKernel(
      CudaModule module, String name, CUfunction function, List<KernelParameter> parameters) {
    this.module = module;
    this.name = name;
    this.function = function;
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
    pointers = offsets.length == 0 ? null : module.device().api().arguments(memory, offsets);
  }

  /**
   * The name that it was found by.
   *
   * @return as in the PTX
   */
  public String name() {
    return name;
  }

  /**
   * Enqueues the kernel on a stream: it runs after what was enqueued there before, and before what
   * is enqueued there later. Nothing else orders it: a buffer that belongs to another stream has to
   * be waited for with an event, both ways.
   *
   * <p>The arguments are those of the kernel, in its order:
   *
   * <table>
   *   <caption>Java's arguments and the kernel's parameters</caption>
   *   <tr><th>Java</th><th>CUDA</th></tr>
   *   <tr><td>{@link CudaBuffer}</td><td>a pointer to its elements</td></tr>
   *   <tr><td>int, long, short, byte</td><td>an integer of 4, 8, 2 or 1 bytes</td></tr>
   *   <tr><td>float, double</td><td>float, double</td></tr>
   * </table>
   *
   * <p>An error that happens while the kernel runs, such as an address out of bounds, is thrown by
   * a later call on this GPU: by {@link CudaStream#await()}, say.
   *
   * @param stream a stream of this kernel's GPU
   * @param grid the blocks and threads
   * @param arguments one for each of the kernel's parameters
   * @throws IllegalArgumentException if the number of arguments is not the kernel's, one of them is
   *     of the wrong kind, or a stream or buffer belongs to another GPU
   * @throws IllegalStateException if the module, the stream or a buffer is closed
   * @throws CudaException if the driver refuses the launch
   */
  public void launch(CudaStream stream, Grid grid, Object... arguments) {
    CudaDevice device = module.device();
    device.requireOwn(stream);
    Objects.requireNonNull(grid, "grid");
    Objects.requireNonNull(arguments, "arguments");
    if (arguments.length != parameters.size()) {
      throw new IllegalArgumentException(
          "wrong number of kernel arguments: kernel="
              + name
              + ", given="
              + arguments.length
              + ", expected="
              + parameters.size());
    }
    synchronized (module) {
      module.requireOpen();
      for (int i = 0; i < arguments.length; i++) {
        put(i, arguments[i]);
      }
      device.makeCurrent();
      // The driver takes a copy of the arguments before it returns.
      device
          .api()
          .launch(
              function,
              grid.blocks(),
              grid.threads(),
              grid.sharedBytes(),
              stream.handle(),
              pointers);
    }
  }

  private void put(int index, Object value) {
    KernelParameter parameter = parameters.get(index);
    int offset = offsets[index];
    if (value instanceof CudaBuffer buffer && parameter.takesInteger(Long.BYTES)) {
      if (buffer.device() != module.device()) {
        throw new IllegalArgumentException(
            "kernel argument belongs to another device: kernel="
                + name
                + ", index="
                + index
                + ", buffer="
                + buffer.device()
                + ", device="
                + module.device());
      }
      memory.putLong(offset, buffer.address());
    } else if (value instanceof Integer i && parameter.takesInteger(Integer.BYTES)) {
      memory.putInt(offset, i);
    } else if (value instanceof Long l && parameter.takesInteger(Long.BYTES)) {
      memory.putLong(offset, l);
    } else if (value instanceof Float f && parameter.takesFloating(Float.BYTES)) {
      memory.putFloat(offset, f);
    } else if (value instanceof Double d && parameter.takesFloating(Double.BYTES)) {
      memory.putDouble(offset, d);
    } else if (value instanceof Short s && parameter.takesInteger(Short.BYTES)) {
      memory.putShort(offset, s);
    } else if (value instanceof Byte b && parameter.takesInteger(Byte.BYTES)) {
      memory.put(offset, b);
    } else {
      throw new IllegalArgumentException(
          "a kernel argument of the wrong kind: kernel="
              + name
              + ", index="
              + index
              + ", class="
              + (value == null ? "null" : value.getClass().getName())
              + ", expected="
              + parameter);
    }
  }

  @Override
  public String toString() {
    return name + parameters;
  }
}
