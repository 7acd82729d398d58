package org.gradientsync.cuda;

import java.util.function.IntFunction;
import org.gradientsync.cuda.internal.driver.CudaApi;
import org.gradientsync.spi.Availability;
import org.gradientsync.spi.BackendDevice;
import org.gradientsync.spi.DeviceProvider;
import org.gradientsync.spi.DeviceRequest;

/**
 * Provides GPUs on drivers that a test supplies, for tests of whole syncs. Without such drivers
 * there are none.
 */
public final class SimulatedDeviceProvider implements DeviceProvider {
  static final String KIND = "simulated";

  private static volatile IntFunction<CudaApi> drivers;

  /** Creates a provider for the service loader. */
  public SimulatedDeviceProvider() {}

  /**
   * Sets the drivers.
   *
   * @param newDrivers returns the driver of each rank, which uses the GPU with its own number; null
   *     removes all
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
