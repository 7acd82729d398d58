package org.gradientsync.tools.links;

import jcuda.driver.CUresult;
import org.gradientsync.DeviceException;

/** Turns the driver's error codes into exceptions. */
public final class DriverCall {
  private DriverCall() {}

  /**
   * Throws if a result is not success.
   *
   * @param result the code that the driver returned
   * @param call the call's name
   * @param what describes the arguments, for example {@code gpu=0, bytes=1024}
   */
  public static void check(int result, String call, String what) {
    if (result != CUresult.CUDA_SUCCESS) {
      throw new DeviceException(
          call + " failed: " + CUresult.stringFor(result) + " (" + result + "), " + what, result);
    }
  }
}
