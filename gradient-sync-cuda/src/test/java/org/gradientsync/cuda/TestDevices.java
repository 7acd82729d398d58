package org.gradientsync.cuda;

import org.gradientsync.cuda.internal.driver.CudaApi;

/** Devices on drivers that a test gives. */
public final class TestDevices {
  private TestDevices() {}

  public static CudaDevice open(CudaApi api, int ordinal) {
    return new CudaDevice(api, ordinal);
  }
}
