package org.gradientsync.cuda.internal.driver;

import java.io.IOException;
import java.io.InputStream;
import java.lang.ref.SoftReference;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import jcuda.driver.CUmodule;
import jcuda.driver.CUresult;
import org.gradientsync.DeviceException;
import org.gradientsync.spi.Settings;
import org.tukaani.xz.XZInputStream;

/**
 * The compiled kernels in this module's jar: machine code for compute capability 7.5, 8.x and 9.0,
 * and PTX, which the driver compiles for newer GPUs at the first use.
 */
public final class KernelImages {
  /** The lowest compute capability with kernels: 10 times major plus minor. */
  private static final int MIN_CAPABILITY = 75;

  private static final String PTX = ".compute_90.ptx";

  private static final Map<String, SoftReference<byte[]>> IMAGES = new ConcurrentHashMap<>();

  private KernelImages() {}

  /**
   * Loads a module on a GPU. The GPU's context is current.
   *
   * @param module the module's name in {@code kernels.txt}
   */
  public static CUmodule load(CudaApi api, int ordinal, String module) {
    int capability = api.capability(ordinal);
    String image = module + suffix(capability);
    try {
      return api.loadImage(image, read(image));
    } catch (DeviceException e) {
      if (image.endsWith(PTX) && e.code() == CUresult.CUDA_ERROR_UNSUPPORTED_PTX_VERSION) {
        throw new DeviceException(
            ("the driver is too old for this GPU: %s, computeCapability=%s;"
                    + " install a newer driver, or build the jar with NVRTC 12.4")
                .formatted(e.getMessage(), text(capability)),
            e.code());
      }
      throw e;
    }
  }

  /** The suffix of the image that a GPU runs. The setting dev.cuda.kernels=ptx is for tests. */
  public static String suffix(int capability) {
    if (capability < MIN_CAPABILITY) {
      throw new DeviceException(
          ("no kernels for this GPU: CUDA_ERROR_NO_BINARY_FOR_GPU (%s), computeCapability=%s;"
                  + " the oldest that can be used is %s")
              .formatted(
                  CUresult.CUDA_ERROR_NO_BINARY_FOR_GPU, text(capability), text(MIN_CAPABILITY)),
          CUresult.CUDA_ERROR_NO_BINARY_FOR_GPU);
    }
    boolean ptx = new Settings(Map.of()).get("dev.cuda.kernels").filter("ptx"::equals).isPresent();
    if (ptx && capability >= 90 || capability > 90) {
      return PTX;
    }
    return capability == 90 ? ".sm_90.cubin" : capability >= 80 ? ".sm_80.cubin" : ".sm_75.cubin";
  }

  /**
   * {@return the decompressed bytes of an image, which the caller must not change} Keeps them for
   * the other GPUs of this process while there is enough memory.
   */
  public static byte[] read(String image) {
    SoftReference<byte[]> kept = IMAGES.get(image);
    byte[] bytes = kept == null ? null : kept.get();
    if (bytes == null) {
      bytes = decompress(image);
      IMAGES.put(image, new SoftReference<>(bytes));
    }
    return bytes;
  }

  private static byte[] decompress(String image) {
    String resource = image + ".xz";
    try (InputStream in = KernelImages.class.getResourceAsStream(resource)) {
      if (in == null) {
        throw new IllegalStateException("the jar is damaged: resource=" + resource);
      }
      return new XZInputStream(in).readAllBytes();
    } catch (IOException e) {
      throw new IllegalStateException("the jar is damaged: resource=" + resource, e);
    }
  }

  private static String text(int capability) {
    return capability / 10 + "." + capability % 10;
  }
}
