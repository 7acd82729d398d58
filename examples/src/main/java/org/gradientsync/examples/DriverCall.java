package org.gradientsync.examples;

import jcuda.driver.CUresult;
import org.gradientsync.cuda.CudaException;

/** Turns the driver's error codes into exceptions. */
final class DriverCall {
  private DriverCall() {}

  /**
   * Refuses a result that is not success.
   *
   * @param what for example {@code gpu=0, bytes=1024}
   */
  static void check(int result, String call, String what) {
    if (result != CUresult.CUDA_SUCCESS) {
      throw new CudaException(
          call + " failed: " + CUresult.stringFor(result) + " (" + result + "), " + what, result);
    }
  }
}
