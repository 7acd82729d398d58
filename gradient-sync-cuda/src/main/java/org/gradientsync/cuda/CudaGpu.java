package org.gradientsync.cuda;

import java.util.List;
import java.util.stream.IntStream;
import org.gradientsync.UnavailableException;
import org.gradientsync.cuda.internal.driver.CudaApi;
import org.gradientsync.cuda.internal.driver.CudaLibrary;

/**
 * A GPU that this process sees, opened or not. {@code CUDA_VISIBLE_DEVICES} decides which these are
 * and how they are numbered.
 *
 * @param ordinal its number, from 0
 * @param name for example {@code NVIDIA H200}
 * @param pciAddress where it sits, for example {@code 0000:1b:00.0}: the same for all processes
 */
public record CudaGpu(int ordinal, String name, String pciAddress) {
  /**
   * All GPUs that this process sees.
   *
   * @return one or more, by number
   * @throws UnavailableException if there is none, or the driver cannot be used; one line says why
   */
  public static List<CudaGpu> visible() {
    CudaApi api = CudaLibrary.api();
    return IntStream.range(0, api.deviceCount())
        .mapToObj(i -> new CudaGpu(i, api.deviceName(i), api.pciAddress(i)))
        .toList();
  }

  @Override
  public String toString() {
    return "GPU " + ordinal + ", " + name + " (" + pciAddress + ")";
  }
}
