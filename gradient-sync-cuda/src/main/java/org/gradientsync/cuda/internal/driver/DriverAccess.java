package org.gradientsync.cuda.internal.driver;

import java.util.Objects;
import org.gradientsync.Stream;
import org.gradientsync.spi.BackendDevice;

/**
 * Gives the library's other packages access to the {@link Gpu} of a {@code CudaDevice} and the
 * {@link GpuStream} of a {@code CudaStream}, so that these need no public methods for that.
 */
public abstract class DriverAccess {
  private static volatile DriverAccess access;

  /** Called by the static initializer of {@code CudaDevice}. */
  public static void set(DriverAccess newAccess) {
    access = newAccess;
  }

  /** The {@link Gpu} of a {@code CudaDevice}. */
  public static Gpu gpu(BackendDevice device) {
    return access.gpuOf(device);
  }

  /** The {@link GpuStream} of a {@code CudaStream}. */
  public static GpuStream stream(Stream stream) {
    return access.streamOf(Objects.requireNonNull(stream, "stream"));
  }

  /** The {@link GpuStream} of a {@code CudaStream}, which must belong to the given GPU. */
  public static GpuStream streamOn(Gpu gpu, Stream stream) {
    GpuStream found = stream(stream);
    found.requireOn(gpu);
    return found;
  }

  protected abstract Gpu gpuOf(BackendDevice device);

  protected abstract GpuStream streamOf(Stream stream);
}
