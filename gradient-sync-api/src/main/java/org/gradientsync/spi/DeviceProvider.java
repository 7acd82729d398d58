package org.gradientsync.spi;

import java.util.Set;

/** A kind of device, found with {@link java.util.ServiceLoader}. */
public interface DeviceProvider {
  /** {@return the kind, as {@link org.gradientsync.Device#kind()}, for example {@code cuda}} */
  String kind();

  /**
   * {@return the priority; devices of a higher one are preferred: 0 for the host's memory, more for
   * faster devices}
   */
  int priority();

  /**
   * {@return the settings that this provider reads in addition to {@link Settings#NAMES}, without
   * the prefix {@code gradientsync.}} The library warns of settings that no provider reads.
   */
  default Set<String> settings() {
    return Set.of();
  }

  /**
   * {@return whether a rank can use such a device, and if not, why} Does not communicate.
   *
   * @param request the rank and its settings
   */
  Availability availability(DeviceRequest request);

  /**
   * {@return the rank's device, newly opened, which the caller closes}
   *
   * @param request the rank and its settings
   */
  BackendDevice open(DeviceRequest request);
}
