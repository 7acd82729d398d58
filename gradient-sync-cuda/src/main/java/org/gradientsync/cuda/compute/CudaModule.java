package org.gradientsync.cuda.compute;

import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;
import jcuda.driver.CUmodule;
import org.gradientsync.UnavailableException;
import org.gradientsync.cuda.CudaDevice;
import org.gradientsync.cuda.CudaException;
import org.gradientsync.cuda.CudaStream;
import org.gradientsync.cuda.internal.driver.DriverAccess;
import org.gradientsync.cuda.internal.driver.Gpu;
import org.gradientsync.spi.Availability;
import org.gradientsync.spi.Resources;

/**
 * Kernels of the caller's own, loaded on one GPU.
 *
 * <pre>{@code
 * CudaDevice device = (CudaDevice) sync.device();
 * try (CudaModule module = CudaModule.load(device, ptx)) {
 *   CudaKernel scale = module.kernel("scale");
 *   scale.launch(buffer.stream(), Grid.covering(buffer.count(), 256), buffer, 0.5f, buffer.count());
 *   sync.average(buffer); // ordered behind the kernel, on the buffer's stream
 *   device.stream().await();
 * }
 * }</pre>
 *
 * <p>Safe for use by several threads. Before it is closed, the work of its kernels must be done:
 * {@link CudaStream#await()} on the streams that they were launched on.
 */
public final class CudaModule implements AutoCloseable {
  private static final int NOT_FOUND = 500;

  private final CudaDevice device;
  private final Gpu gpu;
  private final CUmodule module;
  private final Map<String, List<KernelParameter>> kernels;
  private boolean closed;

  private CudaModule(CudaDevice device, String ptx) {
    this.device = device;
    gpu = DriverAccess.gpu(device);
    gpu.requireOpen();
    kernels = KernelParameter.ofKernels(ptx);
    gpu.makeCurrent();
    module = gpu.api().loadModule(ptx);
  }

  /**
   * Loads kernels.
   *
   * @param device the GPU that they are to run on
   * @param ptx what {@code nvcc -ptx} or another compiler made; the driver compiles it for this GPU
   * @return a module that the caller closes
   * @throws CudaException if the driver does not take it; its log is in the message
   */
  public static CudaModule load(CudaDevice device, String ptx) {
    Objects.requireNonNull(device, "device");
    Objects.requireNonNull(ptx, "ptx");
    return new CudaModule(device, ptx);
  }

  /**
   * Compiles kernels and loads them, where {@link #compilerAvailability()} reports a compiler.
   *
   * @param device the GPU that they are to run on
   * @param cudaSource CUDA C++; kernels are found by their names if they are {@code extern "C"}
   * @param options NVRTC's; without {@code --gpu-architecture} it compiles for this GPU
   * @return a module that the caller closes
   * @throws CudaException if the source is wrong; the compiler's log is in the message
   * @throws UnavailableException if NVRTC does not load here
   */
  public static CudaModule compile(CudaDevice device, String cudaSource, String... options) {
    Objects.requireNonNull(cudaSource, "cudaSource");
    Gpu gpu = DriverAccess.gpu(device);
    gpu.requireOpen();
    String ptx = Nvrtc.compile(cudaSource, Nvrtc.options(gpu.capability(), options));
    return new CudaModule(device, ptx);
  }

  /**
   * Whether {@link #compile} can be used here. Loading PTX needs nothing but the driver.
   *
   * @return usable, or one line that says what is missing
   */
  public static Availability compilerAvailability() {
    try {
      Nvrtc.load();
      return Availability.yes();
    } catch (UnavailableException e) {
      return Availability.no(e.getMessage());
    }
  }

  /**
   * Finds a kernel.
   *
   * @param name as in the PTX: the function's own if it is {@code extern "C"}
   * @return the kernel, which lives as long as this module
   * @throws CudaException if there is none of that name; the message lists those that there are
   */
  public synchronized CudaKernel kernel(String name) {
    requireOpen();
    List<KernelParameter> parameters = kernels.get(name);
    if (parameters == null) {
      throw new CudaException(
          "no such kernel: CUDA_ERROR_NOT_FOUND ("
              + NOT_FOUND
              + "), name="
              + name
              + ", kernels="
              + kernelNames(),
          NOT_FOUND);
    }
    gpu.makeCurrent();
    return new CudaKernel(this, name, gpu.api().function(module, name), parameters);
  }

  /**
   * The kernels of this module.
   *
   * @return their names, sorted
   */
  public Set<String> kernelNames() {
    return new TreeSet<>(kernels.keySet());
  }

  /**
   * The GPU that it is loaded on.
   *
   * @return its device
   */
  public CudaDevice device() {
    return device;
  }

  Gpu gpu() {
    return gpu;
  }

  void requireOpen() {
    if (closed || device.isClosed()) {
      throw new IllegalStateException("module is closed: device=" + device.name());
    }
  }

  /** Unloads the kernels. A second call does nothing. */
  @Override
  public synchronized void close() {
    if (!closed) {
      closed = true;
      Resources.closeAll(gpu::makeCurrent, () -> gpu.api().unloadModule(module));
    }
  }
}
