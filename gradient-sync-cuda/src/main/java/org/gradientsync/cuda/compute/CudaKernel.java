package org.gradientsync.cuda.compute;

import java.util.List;
import java.util.Objects;
import jcuda.driver.CUfunction;
import org.gradientsync.cuda.CudaBuffer;
import org.gradientsync.cuda.CudaException;
import org.gradientsync.cuda.CudaStream;
import org.gradientsync.cuda.internal.driver.DriverAccess;
import org.gradientsync.cuda.internal.driver.Gpu;
import org.gradientsync.cuda.internal.driver.GpuStream;

/**
 * A kernel of a {@link CudaModule}.
 *
 * <p>Safe for use by several threads: launches of one module's kernels are enqueued one after the
 * other, and each has its own arguments. {@link #launch} allocates a little on the Java heap;
 * {@link #prepare} is for what is launched often.
 */
public final class CudaKernel {
  private final CudaModule module;
  private final String name;
  private final CUfunction function;
  private final List<KernelParameter> parameters;
  private final KernelArguments own;

  CudaKernel(
      CudaModule module, String name, CUfunction function, List<KernelParameter> parameters) {
    this.module = module;
    this.name = name;
    this.function = function;
    this.parameters = parameters;
    own = new KernelArguments(module.device(), module.gpu().api(), name, parameters);
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
    Gpu gpu = module.gpu();
    GpuStream on = DriverAccess.streamOn(gpu, stream);
    Objects.requireNonNull(grid, "grid");
    Objects.requireNonNull(arguments, "arguments");
    own.requireCount(arguments.length);
    synchronized (module) {
      module.requireOpen();
      for (int i = 0; i < arguments.length; i++) {
        own.put(i, arguments[i]);
      }
      gpu.makeCurrent();
      // The driver takes a copy of the arguments before it returns.
      gpu.api()
          .launch(
              function,
              grid.blocks(),
              grid.threads(),
              grid.sharedBytes(),
              on.handle(),
              own.pointers());
    }
  }

  /**
   * Makes a launch ready that is to be enqueued many times. What it would cost to pass the
   * arguments anew each time is paid once.
   *
   * @param grid the blocks and threads
   * @param arguments one for each of the kernel's parameters, as {@link #launch} takes them; they
   *     can be changed between launches
   * @return a launch, which ends with this kernel's module
   * @throws IllegalArgumentException if the number of arguments is not the kernel's, one of them is
   *     of the wrong kind, or a buffer belongs to another GPU
   * @throws IllegalStateException if the module or a buffer is closed
   */
  public PreparedLaunch prepare(Grid grid, Object... arguments) {
    Objects.requireNonNull(grid, "grid");
    Objects.requireNonNull(arguments, "arguments");
    own.requireCount(arguments.length);
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
