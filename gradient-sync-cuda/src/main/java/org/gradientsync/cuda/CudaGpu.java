package org.gradientsync.cuda;

import java.util.List;
import java.util.stream.IntStream;
import org.gradientsync.UnavailableException;
import org.gradientsync.cuda.internal.driver.CudaApi;
import org.gradientsync.cuda.internal.driver.CudaLibrary;

/**
 * A GPU that is visible to this process, whether or not it has been opened. {@code
 * CUDA_VISIBLE_DEVICES} decides which GPUs are visible and how they are numbered.
 *
 * @param ordinal its number, from 0
 * @param name for example {@code NVIDIA H200}
 * @param pciAddress for example {@code 0000:1b:00.0}; the same in all processes
 */
public record CudaGpu(int ordinal, String name, String pciAddress) {
  /**
   * All GPUs that are visible to this process.
   *
   * @return one or more GPUs, in the order of their numbers
   * @throws UnavailableException if there is no GPU, or the driver cannot be used; the message is
   *     one line that says why
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
