package org.gradientsync.cuda;

import org.gradientsync.cuda.internal.driver.CudaApi;

/** Opens devices on drivers that a test supplies. */
public final class TestDevices {
  private TestDevices() {}

  public static CudaDevice open(CudaApi api, int ordinal) {
    return new CudaDevice(api, ordinal);
  }
}
