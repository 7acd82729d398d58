package org.gradientsync.spi;

import java.util.Set;

/** A kind of {@link Reducer}, found with {@link java.util.ServiceLoader}. */
public interface ReducerProvider {
  /**
   * The name by which users ask for it.
   *
   * @return for example {@code host-staged}
   */
  String name();

  /**
   * The reducer of the highest priority that every rank can use is taken.
   *
   * @return 0 to 1000
   */
  int priority();

  /**
   * The settings that it reads, besides {@link Settings#NAMES}; a warning tells of those that
   * nobody does.
   *
   * @return names without the prefix {@code gradientsync.}
   */
  default Set<String> settings() {
    return Set.of();
  }

  /**
   * Whether it can work with this rank's device and launcher. Local: no communication.
   *
   * @param context this rank's side
   * @return usable or why not
   */
  Availability availability(SyncContext context);

  /**
   * Builds it. Every rank does so at the same time, so this may communicate.
   *
   * <p>Where it turns out that it cannot be built, the ranks agree on that and all of them throw
   * {@link org.gradientsync.UnavailableException}; the next reducer is tried then.
   *
   * @param context this rank's side
   * @return a reducer that the caller closes
   */
  Reducer create(SyncContext context);
}
