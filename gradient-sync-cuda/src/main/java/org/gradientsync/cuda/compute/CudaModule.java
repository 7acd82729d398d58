package org.gradientsync.cuda.compute;

import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;
import jcuda.driver.CUmodule;
import org.gradientsync.DeviceException;
import org.gradientsync.UnavailableException;
import org.gradientsync.cuda.CudaDevice;
import org.gradientsync.cuda.CudaStream;
import org.gradientsync.cuda.internal.driver.DriverAccess;
import org.gradientsync.cuda.internal.driver.Gpu;
import org.gradientsync.spi.Availability;
import org.gradientsync.spi.Resources;

/**
 * The caller's own kernels, loaded on one GPU.
 *
 * <pre>{@code
 * CudaDevice device = (CudaDevice) sync.device();
 * try (CudaModule module = CudaModule.load(device, ptx)) {
 *   CudaKernel scale = module.kernel("scale");
 *   scale.launch(buffer.stream(), Grid.covering(buffer.count(), 256), buffer, 0.5f, buffer.count());
 *   sync.average(buffer); // runs after the kernel, on the buffer's stream
 *   device.stream().await();
 * }
 * }</pre>
 *
 * <p>Safe for use by several threads. Before closing a module, call {@link CudaStream#await()} on
 * the streams that run its kernels.
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
   * Loads kernels from PTX.
   *
   * @param device the GPU that runs the kernels
   * @param ptx the output of {@code nvcc -ptx} or another compiler; the driver compiles it for this
   *     GPU
   * @return a module that the caller closes
   * @throws DeviceException if the driver cannot load it; the message contains the driver's log
   */
  public static CudaModule load(CudaDevice device, String ptx) {
    Objects.requireNonNull(device, "device");
    Objects.requireNonNull(ptx, "ptx");
    return new CudaModule(device, ptx);
  }

  /**
   * Compiles kernels with NVRTC and loads them.
   *
   * @param device the GPU that runs the kernels
   * @param cudaSource CUDA C++; declare kernels {@code extern "C"} to find them by their names
   * @param options options of NVRTC; without {@code --gpu-architecture} it compiles for this GPU
   * @return a module that the caller closes
   * @throws DeviceException if the source does not compile; the message contains the compiler's log
   * @throws UnavailableException if NVRTC cannot be loaded; see {@link #compilerAvailability()}
   */
  public static CudaModule compile(CudaDevice device, String cudaSource, String... options) {
    Objects.requireNonNull(cudaSource, "cudaSource");
    Gpu gpu = DriverAccess.gpu(device);
    gpu.requireOpen();
    String ptx = Nvrtc.compile(cudaSource, Nvrtc.options(gpu.capability(), options));
    return new CudaModule(device, ptx);
  }

  /**
   * {@return whether {@link #compile} can be used, or one line that says what is missing} {@link
   * #load} needs only the driver.
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
   * @param name the name in the PTX, which is the function's name if it is {@code extern "C"}
   * @return the kernel, valid until this module is closed
   * @throws DeviceException if there is no kernel of that name; the message lists the kernels
   */
  public synchronized CudaKernel kernel(String name) {
    requireOpen();
    List<KernelParameter> parameters = kernels.get(name);
    if (parameters == null) {
      throw new DeviceException(
          "no such kernel: CUDA_ERROR_NOT_FOUND (%s), name=%s, kernels=%s"
              .formatted(NOT_FOUND, name, kernelNames()),
          NOT_FOUND);
    }
    gpu.makeCurrent();
    return new CudaKernel(this, name, gpu.api().function(module, name), parameters);
  }

  /** {@return the names of this module's kernels, sorted} */
  public Set<String> kernelNames() {
    return new TreeSet<>(kernels.keySet());
  }

  /** {@return the GPU that this module is loaded on} */
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
