package org.gradientsync.spi;

import java.util.Objects;

/**
 * Whether a device, a reducer or a library can be used here, and if not, why.
 *
 * @param usable true if it can be used
 * @param reason one line for the user if it cannot be used; empty otherwise
 */
public record Availability(boolean usable, String reason) {
  private static final Availability YES = new Availability(true, "");

  /** {@return the result for something that can be used} */
  public static Availability yes() {
    return YES;
  }

  /**
   * {@return the result for something that cannot be used}
   *
   * @param reason why not, and what to do about it, in one line
   */
  public static Availability no(String reason) {
    return new Availability(false, Objects.requireNonNull(reason, "reason"));
  }
}
