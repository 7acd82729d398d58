package org.gradientsync.cuda;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.gradientsync.UnavailableException;

/**
 * Loads JCuda's natives, once for each process.
 *
 * <p>JCuda unpacks them to one fixed file in the temporary folder, so ranks that start together
 * overwrite each other's (and end with SIGBUS), and a file that another user put there would be
 * loaded. Here the temporary folder is a fresh private one while JCuda looks for it.
 */
final class CudaLibrary {
  /** The oldest driver that takes the PTX in this module's jar. */
  static final int OLDEST_DRIVER = 12000;

  private static final String TEMPORARY = "java.io.tmpdir";
  private static CudaApi api;
  private static UnavailableException failure;

  private CudaLibrary() {}

  /**
   * The driver.
   *
   * @throws UnavailableException if it cannot be used here, with one line that says why
   */
  static synchronized CudaApi api() {
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

  /** Refuses a driver without a GPU, and one that is too old. */
  static void requireUsable(CudaApi api) {
    int count;
    try {
      count = api.deviceCount();
    } catch (CudaException e) {
      if (e.code() != CudaApi.NO_DEVICE) {
        throw new UnavailableException("the NVIDIA driver cannot be used: " + e.getMessage(), e);
      }
      count = 0;
    }
    if (count == 0) {
      throw new UnavailableException("there is no NVIDIA GPU, or CUDA_VISIBLE_DEVICES hides it");
    }
    int version = api.driverVersion();
    if (version < OLDEST_DRIVER) {
      throw new UnavailableException(
          "the NVIDIA driver is too old: cudaVersion="
              + text(version)
              + ", needed="
              + text(OLDEST_DRIVER)
              + " (driver 525)");
    }
  }

  private static String text(int version) {
    return version / 1000 + "." + version % 1000 / 10;
  }

  private static CudaApi load() {
    String before = System.getProperty(TEMPORARY);
    Path folder;
    try {
      folder = Files.createTempDirectory("gradient-sync-cuda-"); // readable by this user alone
    } catch (IOException e) {
      throw new UnavailableException("no private folder can be made in " + before, e);
    }
    try {
      System.setProperty(TEMPORARY, folder.toString());
      return new JCudaApi();
    } catch (CudaException e) {
      throw new UnavailableException("the NVIDIA driver cannot be used: " + e.getMessage(), e);
    } catch (LinkageError e) {
      throw new UnavailableException(
          "the NVIDIA driver (libcuda.so.1) or JCuda's natives do not load: "
              + e.getMessage()
                  .lines()
                  .filter(l -> l.contains(".so"))
                  .findFirst()
                  .orElse(e.toString()),
          e);
    } finally {
      System.setProperty(TEMPORARY, before);
      deleteAtExit(folder);
    }
  }

  private static void deleteAtExit(Path folder) {
    folder.toFile().deleteOnExit();
    try (var files = Files.walk(folder)) {
      files.skip(1).forEach(f -> f.toFile().deleteOnExit());
    } catch (IOException e) {
      throw new UnavailableException("the private folder cannot be read: folder=" + folder, e);
    }
  }
}
