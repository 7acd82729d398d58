package org.gradientsync.cuda;

import java.util.function.IntFunction;
import org.gradientsync.cuda.internal.driver.CudaApi;
import org.gradientsync.spi.Availability;
import org.gradientsync.spi.BackendDevice;
import org.gradientsync.spi.DeviceProvider;
import org.gradientsync.spi.DeviceRequest;

/** GPUs on drivers that a test gives, for whole syncs; there are none while no test gives any. */
public final class SimulatedDeviceProvider implements DeviceProvider {
  static final String KIND = "simulated";

  private static volatile IntFunction<CudaApi> drivers;

  /** For the service loader. */
  public SimulatedDeviceProvider() {}

  /**
   * Gives drivers.
   *
   * @param newDrivers of each rank, which takes the GPU of its number; null for none any more
   */
  static void use(IntFunction<CudaApi> newDrivers) {
    drivers = newDrivers;
  }

  @Override
  public String kind() {
    return KIND;
  }

  @Override
  public int priority() {
    return -1;
  }

  @Override
  public Availability availability(DeviceRequest request) {
    return drivers == null ? Availability.no("no test gives any") : Availability.yes();
  }

  @Override
  public BackendDevice open(DeviceRequest request) {
    return new CudaDevice(drivers.apply(request.rank()), request.localRank());
  }
}
