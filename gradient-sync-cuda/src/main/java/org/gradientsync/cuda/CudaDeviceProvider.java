package org.gradientsync.cuda;

import org.gradientsync.UnavailableException;
import org.gradientsync.spi.Availability;
import org.gradientsync.spi.BackendDevice;
import org.gradientsync.spi.DeviceProvider;
import org.gradientsync.spi.DeviceRequest;

/** The place where CUDA devices will be offered; this version has none and says so when asked. */
public final class CudaDeviceProvider implements DeviceProvider {
  private static final String NOT_YET = "this version of gradient-sync-cuda has no device yet";

  @Override
  public String kind() {
    return "cuda";
  }

  @Override
  public int priority() {
    return 100;
  }

  @Override
  public Availability availability(DeviceRequest request) {
    return Availability.no(NOT_YET);
  }

  @Override
  public BackendDevice open(DeviceRequest request) {
    throw new UnavailableException(NOT_YET + ", rank=" + request.rank());
  }
}
