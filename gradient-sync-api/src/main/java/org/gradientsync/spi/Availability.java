package org.gradientsync.spi;

import java.util.Objects;

/**
 * Whether something can be used here, and if not, why.
 *
 * @param usable true if it can be used
 * @param reason one line for the user if it cannot; empty otherwise
 */
public record Availability(boolean usable, String reason) {
  private static final Availability YES = new Availability(true, "");

  /**
   * Checks the arguments.
   *
   * @param usable true if it can be used
   * @param reason one line for the user if it cannot; empty otherwise
   */
  public Availability {
    Objects.requireNonNull(reason, "reason");
  }

  /**
   * It can be used.
   *
   * @return usable
   */
  public static Availability yes() {
    return YES;
  }

  /**
   * It cannot be used.
   *
   * @param reason why not, and what to do about it, in one line
   * @return not usable
   */
  public static Availability no(String reason) {
    return new Availability(false, reason);
  }
}
