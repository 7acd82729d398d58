package org.gradientsync.cuda.compute;

import org.gradientsync.cuda.CudaDevice;
import org.gradientsync.cuda.internal.driver.BlasApi;

/** cuBLAS as a test gives it. */
public final class TestBlas {
  private TestBlas() {}

  public static CudaBlas on(CudaDevice device, BlasApi api) {
    return new CudaBlas(device, api);
  }
}
