package org.gradientsync.examples.djl;

import ai.djl.Device;
import ai.djl.engine.Engine;
import ai.djl.engine.StandardCapabilities;
import java.nio.file.Path;
import org.gradientsync.GradientSync;
import org.gradientsync.UnavailableException;
import org.gradientsync.cuda.CudaDevice;

/** Starts DJL's engine for PyTorch, without a network. */
final class PyTorch {
  private PyTorch() {}

  /**
   * Loads PyTorch, once in a process. Collective.
   *
   * @param threads how many threads compute
   */
  static Engine load(GradientSync sync, int threads) {
    // DJL reads them when its classes are loaded. Offline, it neither fetches natives nor reports
    // its use; it takes the natives from the class path.
    setIfUnset("ai.djl.offline", "true");
    if (System.getenv("DJL_CACHE_DIR") == null && System.getProperty("DJL_CACHE_DIR") == null) {
      setIfUnset("ENGINE_CACHE_DIR", cache().toString());
    }
    System.setProperty("ai.djl.pytorch.num_threads", Integer.toString(threads));
    System.setProperty("ai.djl.pytorch.num_interop_threads", "1");
    if (sync.localRank() == 0) {
      Engine.getEngine("PyTorch"); // unpacks the natives where they are not yet in the cache
    }
    sync.barrier();
    return Engine.getEngine("PyTorch");
  }

  /** The sync's GPU as DJL names it: both go by the order that CUDA shows this process. */
  static Device gpu(Engine engine, GradientSync sync) {
    int ordinal = ((CudaDevice) sync.device()).ordinal();
    if (!engine.hasCapability(StandardCapabilities.CUDA)) {
      throw new UnavailableException(
          "DJL's PyTorch has no CUDA: version="
              + engine.getVersion()
              + ", rank="
              + sync.rank()
              + "; see docs/deep-java-library.md for the natives that --gpu needs");
    }
    if (engine.getGpuCount() <= ordinal) {
      throw new UnavailableException(
          "DJL does not see the GPU: gpu="
              + ordinal
              + ", seen="
              + engine.getGpuCount()
              + ", rank="
              + sync.rank()
              + "; it asks libcudart.so: add the folder that has it to LD_LIBRARY_PATH");
    }
    return Device.gpu(ordinal);
  }

  /** Where DJL unpacks its natives, 452 MB. */
  private static Path cache() {
    String caches = System.getenv("XDG_CACHE_HOME");
    Path folder =
        caches == null || caches.isEmpty()
            ? Path.of(System.getProperty("user.home"), ".cache")
            : Path.of(caches);
    return folder.resolve("gradient-sync").resolve("djl");
  }

  private static void setIfUnset(String property, String value) {
    if (System.getProperty(property) == null) {
      System.setProperty(property, value);
    }
  }
}
