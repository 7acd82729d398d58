package org.gradientsync.cuda.compute;

import java.util.List;
import java.util.Objects;
import jcuda.driver.CUfunction;
import org.gradientsync.DeviceException;
import org.gradientsync.cuda.CudaBuffer;
import org.gradientsync.cuda.CudaStream;
import org.gradientsync.cuda.internal.driver.DriverAccess;
import org.gradientsync.cuda.internal.driver.Gpu;
import org.gradientsync.cuda.internal.driver.GpuStream;

/**
 * A kernel of a {@link CudaModule}.
 *
 * <p>Safe for use by several threads: launches of one module's kernels are enqueued one after the
 * other, and each has its own arguments. {@link #launch} allocates a little on the Java heap; use
 * {@link #prepare} for frequent launches.
 */
public final class CudaKernel {
  private final CudaModule module;
  private final String name;
  private final CUfunction function;
  private final List<KernelParameter> parameters;
  private final KernelArguments launchArguments; // guarded by module

  CudaKernel(
      CudaModule module, String name, CUfunction function, List<KernelParameter> parameters) {
    this.module = module;
    this.name = name;
    this.function = function;
    this.parameters = parameters;
    launchArguments = new KernelArguments(module.device(), module.gpu().api(), name, parameters);
  }

  /** {@return the kernel's name in the PTX, as passed to {@link CudaModule#kernel}} */
  public String name() {
    return name;
  }

  /**
   * Enqueues the kernel on a stream. It runs after the work enqueued there before, and before the
   * work enqueued there later. Nothing else orders it: if a buffer belongs to another stream, use
   * events to wait for that stream before the kernel, and for the kernel after it.
   *
   * <p>Pass one argument for each of the kernel's parameters, in the same order:
   *
   * <table>
   *   <caption>Java arguments and kernel parameters</caption>
   *   <tr><th>Java</th><th>CUDA</th></tr>
   *   <tr><td>{@link CudaBuffer}</td><td>a pointer to its elements</td></tr>
   *   <tr><td>int, long, short, byte</td><td>an integer of 4, 8, 2 or 1 bytes</td></tr>
   *   <tr><td>float, double</td><td>float, double</td></tr>
   * </table>
   *
   * <p>If the kernel fails while it runs, for example because it accesses an illegal address, a
   * later call on this GPU throws the error, such as {@link CudaStream#await()}.
   *
   * @param stream a stream of this kernel's GPU
   * @param grid the blocks and threads
   * @param arguments one for each of the kernel's parameters
   * @throws IllegalArgumentException if the number or type of the arguments does not match the
   *     kernel's parameters, or the stream or a buffer belongs to another GPU
   * @throws IllegalStateException if the module, the stream or a buffer is closed
   * @throws DeviceException if the driver rejects the launch
   */
  public void launch(CudaStream stream, Grid grid, Object... arguments) {
    Gpu gpu = module.gpu();
    GpuStream on = DriverAccess.streamOn(gpu, stream);
    Objects.requireNonNull(grid, "grid");
    Objects.requireNonNull(arguments, "arguments");
    launchArguments.requireCount(arguments.length);
    synchronized (module) {
      module.requireOpen();
      for (int i = 0; i < arguments.length; i++) {
        launchArguments.put(i, arguments[i]);
      }
      gpu.makeCurrent();
      // The driver copies the arguments before it returns.
      gpu.api()
          .launch(
              function,
              grid.blocks(),
              grid.threads(),
              grid.sharedBytes(),
              on.handle(),
              launchArguments.pointers());
    }
  }

  /**
   * Prepares a launch that is enqueued many times, so that each launch need not pass all arguments
   * again.
   *
   * @param grid the blocks and threads
   * @param arguments one for each of the kernel's parameters, as for {@link #launch}; {@link
   *     PreparedLaunch} can change them between launches
   * @return a launch, valid until this kernel's module is closed
   * @throws IllegalArgumentException if the number or type of the arguments does not match the
   *     kernel's parameters, or a buffer belongs to another GPU
   * @throws IllegalStateException if the module or a buffer is closed
   */
  public PreparedLaunch prepare(Grid grid, Object... arguments) {
    Objects.requireNonNull(grid, "grid");
    Objects.requireNonNull(arguments, "arguments");
    launchArguments.requireCount(arguments.length);
    synchronized (module) {
      module.requireOpen();
      return new PreparedLaunch(
          module,
          function,
          new KernelArguments(module.device(), module.gpu().api(), name, parameters),
          grid,
          arguments);
    }
  }

  @Override
  public String toString() {
    return name + parameters;
  }
}
