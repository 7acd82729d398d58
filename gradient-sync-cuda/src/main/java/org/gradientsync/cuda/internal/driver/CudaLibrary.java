package org.gradientsync.cuda.internal.driver;

import org.gradientsync.DeviceException;
import org.gradientsync.UnavailableException;

/** Loads the driver and JCuda's natives, once per process. */
public final class CudaLibrary {
  /** The oldest driver version that works with the jar's kernels and with JCuda's natives. */
  static final int OLDEST_DRIVER = 12000;

  private static CudaApi api;
  private static UnavailableException failure;

  private static final String NO_GPU = "there is no NVIDIA GPU, or CUDA_VISIBLE_DEVICES hides it";

  private CudaLibrary() {}

  private static UnavailableException unusable(DeviceException e) {
    return new UnavailableException("the NVIDIA driver cannot be used: " + e.getMessage(), e);
  }

  /**
   * The driver, loaded by the first call.
   *
   * @throws UnavailableException if it cannot be used; the message is one line that says why
   */
  public static synchronized CudaApi api() {
    if (api == null && failure == null) {
      try {
        api = load();
        requireUsable(api);
      } catch (UnavailableException e) {
        api = null;
        failure = e;
      }
    }
    if (failure != null) {
      throw failure;
    }
    return api;
  }

  /** Throws if there is no GPU, or the driver is too old. */
  public static void requireUsable(CudaApi api) {
    int count;
    try {
      count = api.deviceCount();
    } catch (DeviceException e) {
      if (e.code() != CudaApi.NO_DEVICE) {
        throw unusable(e);
      }
      count = 0;
    }
    if (count == 0) {
      throw new UnavailableException(NO_GPU);
    }
    int version = api.driverVersion();
    if (version < OLDEST_DRIVER) {
      throw new UnavailableException(
          "the NVIDIA driver is too old: cudaVersion=%s, needed=%s (driver 525)"
              .formatted(text(version), text(OLDEST_DRIVER)));
    }
  }

  private static String text(int version) {
    return version / 1000 + "." + version % 1000 / 10;
  }

  private static CudaApi load() {
    try {
      return NativeFolder.whileLoading(JCudaApi::new);
    } catch (DeviceException e) {
      throw e.code() == CudaApi.NO_DEVICE ? new UnavailableException(NO_GPU, e) : unusable(e);
    } catch (LinkageError e) {
      throw new UnavailableException(
          "the NVIDIA driver (libcuda.so.1) or JCuda's natives do not load: "
              + NativeFolder.reason(e),
          e);
    }
  }
}
