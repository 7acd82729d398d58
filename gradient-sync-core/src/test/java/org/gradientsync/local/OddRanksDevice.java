package org.gradientsync.local;

import org.gradientsync.core.host.HostDevice;
import org.gradientsync.spi.Availability;
import org.gradientsync.spi.BackendDevice;
import org.gradientsync.spi.DeviceProvider;
import org.gradientsync.spi.DeviceRequest;

/**
 * A kind of device that only the odd ranks of a node can use. It is preferred only while a test
 * sets {@link #PREFERRED}.
 */
public final class OddRanksDevice implements DeviceProvider {
  static final String PREFERRED = "oddRanks";

  @Override
  public String kind() {
    return "odd-ranks";
  }

  @Override
  public int priority() {
    return Boolean.getBoolean(PREFERRED) ? 1000 : -1;
  }

  @Override
  public Availability availability(DeviceRequest request) {
    return request.localRank() % 2 == 1 ? Availability.yes() : Availability.no("this rank is even");
  }

  @Override
  public BackendDevice open(DeviceRequest request) {
    return new HostDevice();
  }
}
