package org.gradientsync.core.host;

import org.gradientsync.spi.Availability;
import org.gradientsync.spi.BackendDevice;
import org.gradientsync.spi.DeviceProvider;
import org.gradientsync.spi.DeviceRequest;

/** Provides host memory, which every rank has. */
public final class HostDeviceProvider implements DeviceProvider {
  /** For the service loader. */
  public HostDeviceProvider() {}

  @Override
  public String kind() {
    return HostDevice.KIND;
  }

  @Override
  public int priority() {
    return 0;
  }

  @Override
  public Availability availability(DeviceRequest request) {
    return Availability.yes();
  }

  @Override
  public BackendDevice open(DeviceRequest request) {
    return new HostDevice();
  }
}
