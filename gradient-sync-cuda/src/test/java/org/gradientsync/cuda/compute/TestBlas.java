package org.gradientsync.cuda.compute;

import org.gradientsync.cuda.CudaDevice;
import org.gradientsync.cuda.internal.driver.BlasApi;

/** Creates a cuBLAS on an API that a test supplies. */
public final class TestBlas {
  private TestBlas() {}

  public static CudaBlas on(CudaDevice device, BlasApi api) {
    return new CudaBlas(device, api);
  }
}
