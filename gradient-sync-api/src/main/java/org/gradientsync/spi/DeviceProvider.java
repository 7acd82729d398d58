package org.gradientsync.spi;

import java.util.Set;

/** A kind of device, found with {@link java.util.ServiceLoader}. */
public interface DeviceProvider {
  /**
   * The kind, as {@link org.gradientsync.Device#kind()}.
   *
   * @return for example {@code cuda}
   */
  String kind();

  /**
   * Devices of a higher priority are preferred.
   *
   * @return 0 for the host's memory, more for faster devices
   */
  int priority();

  /**
   * The settings that this provider reads in addition to {@link Settings#NAMES}. The library warns
   * of settings that no provider reads.
   *
   * @return names without the prefix {@code gradientsync.}
   */
  default Set<String> settings() {
    return Set.of();
  }

  /**
   * Whether a rank can use such a device. Does not communicate.
   *
   * @param request the rank and its settings
   * @return usable, or why not
   */
  Availability availability(DeviceRequest request);

  /**
   * Opens the rank's device.
   *
   * @param request the rank and its settings
   * @return a device that the caller closes
   */
  BackendDevice open(DeviceRequest request);
}
