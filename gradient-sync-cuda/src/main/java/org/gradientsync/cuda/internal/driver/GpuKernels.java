package org.gradientsync.cuda.internal.driver;

import org.gradientsync.spi.Resources;

/**
 * The kernels of a GPU. The first use of each loads it, also while a stream is being captured, and
 * the driver may have to compile it.
 */
public final class GpuKernels implements AutoCloseable {
  private final Gpu gpu;
  private final Kernel<ReduceKernel> reduce = new Kernel<>(ReduceKernel::new);
  private final Kernel<CopyKernel> copy = new Kernel<>(CopyKernel::new);
  private final Kernel<FiniteCheck> finite = new Kernel<>(FiniteCheck::new);
  private final Kernel<NormKernel> norm = new Kernel<>(NormKernel::new);

  GpuKernels(Gpu gpu) {
    this.gpu = gpu;
  }

  /** Loads a kernel. */
  private interface Loader<T> {
    T load(CudaApi api, int ordinal);
  }

  /** A kernel, once it is loaded. */
  private final class Kernel<T extends AutoCloseable> {
    private final Loader<T> loader;
    private volatile T loaded; // or null

    Kernel(Loader<T> loader) {
      this.loader = loader;
    }

    T get() {
      T kernel = loaded;
      return kernel == null ? load() : kernel;
    }

    private T load() {
      synchronized (GpuKernels.this) {
        if (loaded == null) {
          gpu.requireOpen();
          gpu.makeCurrent();
          int mode = gpu.api().captureMode(CudaApi.ANY_CALL);
          try {
            gpu.gate().run(() -> loaded = loader.load(gpu.api(), gpu.ordinal()));
          } finally {
            gpu.api().captureMode(mode);
          }
        }
        return loaded;
      }
    }
  }

  /** Reductions and conversions. */
  public ReduceKernel reduce() {
    return reduce.get();
  }

  /** Copies of many buffers. */
  public CopyKernel copy() {
    return copy.get();
  }

  /** The search for values that are not finite. */
  public FiniteCheck finite() {
    return finite.get();
  }

  /** Norms. */
  public NormKernel norm() {
    return norm.get();
  }

  /** Whether {@link #norm} has been loaded. */
  public boolean hasNorm() {
    return norm.loaded != null;
  }

  /** Unloads what is loaded. The GPU's context is current. */
  @Override
  public void close() {
    Resources.closeAll(reduce.loaded, copy.loaded, finite.loaded, norm.loaded);
  }
}
