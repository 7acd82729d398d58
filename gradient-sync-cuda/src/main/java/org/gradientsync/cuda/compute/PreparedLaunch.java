package org.gradientsync.cuda.compute;

import java.util.Objects;
import jcuda.driver.CUfunction;
import org.gradientsync.cuda.CudaBuffer;
import org.gradientsync.cuda.CudaException;
import org.gradientsync.cuda.CudaStream;
import org.gradientsync.cuda.internal.driver.DriverAccess;
import org.gradientsync.cuda.internal.driver.Gpu;
import org.gradientsync.cuda.internal.driver.GpuStream;

/**
 * A launch of a kernel that is made ready once and enqueued any number of times, with all or some
 * of its arguments as they were the last time; see {@link CudaKernel#prepare}. Neither launching
 * nor setting an argument allocates anything.
 *
 * <p>Safe for use by several threads: each launch has the arguments that were set when it was
 * called. It ends with its module.
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
   * Changes a pointer for the launches that follow.
   *
   * @param index of the kernel's arguments, from 0
   * @param buffer a buffer of the kernel's GPU, which must not be closed before they are enqueued
   * @return this
   * @throws IllegalArgumentException if the kernel expects something else there, or the buffer
   *     belongs to another GPU
   * @throws IllegalStateException if the buffer is closed
   * @throws IndexOutOfBoundsException if the kernel has no such argument
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
   * Changes an integer of 4 bytes for the launches that follow.
   *
   * @param index of the kernel's arguments, from 0
   * @param value the argument
   * @return this
   * @throws IllegalArgumentException if the kernel expects something else there
   * @throws IndexOutOfBoundsException if the kernel has no such argument
   */
  public PreparedLaunch set(int index, int value) {
    synchronized (module) {
      arguments.put(index, value);
    }
    return this;
  }

  /**
   * Changes an integer of 8 bytes for the launches that follow.
   *
   * @param index of the kernel's arguments, from 0
   * @param value the argument
   * @return this
   * @throws IllegalArgumentException if the kernel expects something else there
   * @throws IndexOutOfBoundsException if the kernel has no such argument
   */
  public PreparedLaunch set(int index, long value) {
    synchronized (module) {
      arguments.put(index, value);
      buffers[index] = null;
    }
    return this;
  }

  /**
   * Changes a float for the launches that follow.
   *
   * @param index of the kernel's arguments, from 0
   * @param value the argument
   * @return this
   * @throws IllegalArgumentException if the kernel expects something else there
   * @throws IndexOutOfBoundsException if the kernel has no such argument
   */
  public PreparedLaunch set(int index, float value) {
    synchronized (module) {
      arguments.put(index, value);
    }
    return this;
  }

  /**
   * Changes a double for the launches that follow.
   *
   * @param index of the kernel's arguments, from 0
   * @param value the argument
   * @return this
   * @throws IllegalArgumentException if the kernel expects something else there
   * @throws IndexOutOfBoundsException if the kernel has no such argument
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
   * @throws CudaException if the driver refuses the launch
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
