package org.gradientsync.cuda;

import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import jcuda.driver.CUmodule;
import org.gradientsync.UnavailableException;
import org.gradientsync.spi.Availability;
import org.gradientsync.spi.Resources;

/**
 * Kernels of the caller's own, loaded on one GPU.
 *
 * <pre>{@code
 * CudaDevice device = (CudaDevice) sync.device();
 * try (CudaModule module = device.loadModule(ptx)) {
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
  private final CUmodule module;
  private final Map<String, List<KernelParameter>> kernels;
  private boolean closed;

  CudaModule(CudaDevice device, String ptx) {
    this.device = device;
    kernels = KernelParameter.ofKernels(ptx);
    device.makeCurrent();
    module = device.api().loadModule(ptx);
  }

  /**
   * Whether {@link CudaDevice#compile} can be used here. Loading PTX needs nothing but the driver.
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
    device.makeCurrent();
    return new CudaKernel(this, name, device.api().function(module, name), parameters);
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
      Resources.closeAll(device::makeCurrent, () -> device.api().unloadModule(module));
    }
  }
}
