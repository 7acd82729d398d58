package org.gradientsync.cuda.internal.driver;

import java.util.Objects;
import org.gradientsync.Stream;
import org.gradientsync.spi.BackendDevice;

/**
 * Gives the library's other packages what stands behind {@code CudaDevice} and {@code CudaStream},
 * so that these need no public methods for it.
 */
public abstract class DriverAccess {
  private static volatile DriverAccess access;

  /** Called by {@code CudaDevice} before there is any device. */
  public static void set(DriverAccess newAccess) {
    access = newAccess;
  }

  /** What stands behind a {@code CudaDevice}. */
  public static Gpu gpu(BackendDevice device) {
    return access.gpuOf(device);
  }

  /** What stands behind a {@code CudaStream}. */
  public static GpuStream stream(Stream stream) {
    return access.streamOf(Objects.requireNonNull(stream, "stream"));
  }

  /** What stands behind a {@code CudaStream}, which must be of a GPU. */
  public static GpuStream streamOn(Gpu gpu, Stream stream) {
    GpuStream found = stream(stream);
    found.requireOn(gpu);
    return found;
  }

  protected abstract Gpu gpuOf(BackendDevice device);

  protected abstract GpuStream streamOf(Stream stream);
}
