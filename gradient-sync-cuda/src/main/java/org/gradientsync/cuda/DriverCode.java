package org.gradientsync.cuda;

import java.util.HashMap;
import java.util.Map;
import java.util.function.IntSupplier;
import jcuda.driver.CUresult;

/**
 * What a call of the driver has returned, also where the program has called {@code
 * JCudaDriver.setExceptionsEnabled(true)}: that holds for the whole process, and JCuda throws an
 * exception then, with the code's name only.
 */
final class DriverCode {
  private static final int UNKNOWN = CUresult.CUDA_ERROR_UNKNOWN; // 999, the largest there is
  private static final Map<String, Integer> BY_NAME = new HashMap<>();

  static {
    for (int code = 0; code <= UNKNOWN; code++) {
      BY_NAME.put(CUresult.stringFor(code), code);
    }
  }

  private DriverCode() {}

  /** Makes a call; for those that may allocate. */
  static int of(IntSupplier call) {
    try {
      return call.getAsInt();
    } catch (jcuda.CudaException e) {
      return of(e);
    }
  }

  /** The code of what JCuda has thrown. */
  static int of(jcuda.CudaException thrown) {
    return BY_NAME.getOrDefault(thrown.getMessage(), UNKNOWN);
  }
}
