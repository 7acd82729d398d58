package org.gradientsync.cuda;

import java.util.function.IntFunction;
import java.util.function.IntSupplier;
import jcuda.driver.CUresult;

/**
 * What a call of JCuda's has returned, also where the program lets JCuda throw exceptions ({@code
 * JCudaDriver.setExceptionsEnabled(true)} and the like): that holds for the whole process, and the
 * exceptions have the codes' names only.
 */
final class ReturnCode {
  private static final int LARGEST = 999; // of the driver, of cuBLAS and of NVRTC: "unknown error"

  private ReturnCode() {}

  /** Makes a call of the driver; for calls that may allocate. */
  static int of(IntSupplier call) {
    return of(call, CUresult::stringFor);
  }

  /** Makes a call. */
  static int of(IntSupplier call, IntFunction<String> names) {
    try {
      return call.getAsInt();
    } catch (jcuda.CudaException e) {
      return of(e, names);
    }
  }

  /** The driver's code in what was thrown. */
  static int of(jcuda.CudaException thrown) {
    return of(thrown, CUresult::stringFor);
  }

  /** The code of that name, or {@link #LARGEST} if there is none. */
  static int of(jcuda.CudaException thrown, IntFunction<String> names) {
    int code = 0;
    while (code < LARGEST && !names.apply(code).equals(thrown.getMessage())) {
      code++;
    }
    return code;
  }
}
