package org.gradientsync.spi;

import java.util.Set;

/** A kind of {@link Reducer}, found with {@link java.util.ServiceLoader}. */
public interface ReducerProvider {
  /** {@return the reducer's name, by which users select it, for example {@code host-staged}} */
  String name();

  /**
   * {@return the reducer's priority, 0 to 1000} The library selects the reducer with the highest
   * priority that every rank can use.
   */
  int priority();

  /**
   * {@return the settings that this provider and its reducers read in addition to {@link
   * Settings#NAMES}, without the prefix {@code gradientsync.}} The library warns of settings that
   * no launcher and no provider reads.
   */
  default Set<String> settings() {
    return Set.of();
  }

  /**
   * {@return whether the reducer works with this rank's device and launcher, and if not, why} Does
   * not communicate.
   *
   * @param context this rank's group, device and settings
   */
  Availability availability(SyncContext context);

  /**
   * {@return a new reducer, which the caller closes} Collective, so it may communicate. If a rank
   * cannot create it, the ranks agree on that and all of them throw an {@link
   * org.gradientsync.UnavailableException}; the library then tries the next reducer.
   *
   * @param context this rank's group, device and settings
   */
  Reducer create(SyncContext context);
}
