package org.gradientsync.cuda.compute;

import java.util.Objects;
import jcuda.driver.CUfunction;
import org.gradientsync.DeviceException;
import org.gradientsync.cuda.CudaBuffer;
import org.gradientsync.cuda.CudaStream;
import org.gradientsync.cuda.internal.driver.DriverAccess;
import org.gradientsync.cuda.internal.driver.Gpu;
import org.gradientsync.cuda.internal.driver.GpuStream;

/**
 * A launch of a kernel that is prepared once and enqueued any number of times; see {@link
 * CudaKernel#prepare}. An argument keeps its value until it is set again. Neither launching nor
 * setting an argument allocates anything.
 *
 * <p>Safe for use by several threads: each launch uses the arguments that are set when it is
 * called. Valid until its module is closed.
 */
public final class PreparedLaunch {
  private final CudaModule module;
  private final CUfunction function;
  private final KernelArguments arguments;
  private final CudaBuffer[] buffers;
  private final int[] blocks;
  private final int[] threads;
  private final int sharedBytes;

  PreparedLaunch(
      CudaModule module,
      CUfunction function,
      KernelArguments arguments,
      Grid grid,
      Object[] values) {
    this.module = module;
    this.function = function;
    this.arguments = arguments;
    blocks = grid.blocks();
    threads = grid.threads();
    sharedBytes = grid.sharedBytes();
    buffers = new CudaBuffer[arguments.size()];
    for (int i = 0; i < values.length; i++) {
      arguments.put(i, values[i]);
      buffers[i] = values[i] instanceof CudaBuffer buffer ? buffer : null;
    }
  }

  /**
   * Sets a pointer for later launches.
   *
   * @param index the argument's index, from 0
   * @param buffer a buffer of the kernel's GPU, which must be open at each launch
   * @return this
   * @throws IllegalArgumentException if that parameter has another type, or the buffer belongs to
   *     another GPU
   * @throws IllegalStateException if the buffer is closed
   * @throws IndexOutOfBoundsException if the kernel has no such parameter
   */
  public PreparedLaunch set(int index, CudaBuffer buffer) {
    Objects.requireNonNull(buffer, "buffer");
    synchronized (module) {
      arguments.put(index, buffer);
      buffers[index] = buffer;
    }
    return this;
  }

  /**
   * Sets a 4-byte integer for later launches.
   *
   * @param index the argument's index, from 0
   * @param value the value
   * @return this
   * @throws IllegalArgumentException if that parameter has another type
   * @throws IndexOutOfBoundsException if the kernel has no such parameter
   */
  public PreparedLaunch set(int index, int value) {
    synchronized (module) {
      arguments.put(index, value);
    }
    return this;
  }

  /**
   * Sets an 8-byte integer for later launches.
   *
   * @param index the argument's index, from 0
   * @param value the value
   * @return this
   * @throws IllegalArgumentException if that parameter has another type
   * @throws IndexOutOfBoundsException if the kernel has no such parameter
   */
  public PreparedLaunch set(int index, long value) {
    synchronized (module) {
      arguments.put(index, value);
      buffers[index] = null;
    }
    return this;
  }

  /**
   * Sets a float for later launches.
   *
   * @param index the argument's index, from 0
   * @param value the value
   * @return this
   * @throws IllegalArgumentException if that parameter has another type
   * @throws IndexOutOfBoundsException if the kernel has no such parameter
   */
  public PreparedLaunch set(int index, float value) {
    synchronized (module) {
      arguments.put(index, value);
    }
    return this;
  }

  /**
   * Sets a double for later launches.
   *
   * @param index the argument's index, from 0
   * @param value the value
   * @return this
   * @throws IllegalArgumentException if that parameter has another type
   * @throws IndexOutOfBoundsException if the kernel has no such parameter
   */
  public PreparedLaunch set(int index, double value) {
    synchronized (module) {
      arguments.put(index, value);
      buffers[index] = null;
    }
    return this;
  }

  /**
   * Enqueues the kernel on a stream, as {@link CudaKernel#launch} does.
   *
   * @param stream a stream of the kernel's GPU
   * @throws IllegalArgumentException if the stream belongs to another GPU
   * @throws IllegalStateException if the module, the stream or a buffer is closed
   * @throws DeviceException if the driver rejects the launch
   */
  public void launch(CudaStream stream) {
    Gpu gpu = module.gpu();
    GpuStream on = DriverAccess.streamOn(gpu, stream);
    synchronized (module) {
      module.requireOpen();
      for (CudaBuffer buffer : buffers) {
        if (buffer != null) {
          buffer.requireOpen();
        }
      }
      gpu.makeCurrent();
      gpu.api().launch(function, blocks, threads, sharedBytes, on.handle(), arguments.pointers());
    }
  }
}
