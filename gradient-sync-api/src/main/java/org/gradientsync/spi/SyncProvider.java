package org.gradientsync.spi;

import org.gradientsync.GradientSync;

/**
 * The engine behind {@link GradientSync}, found with {@link java.util.ServiceLoader}. {@code
 * gradient-sync-core} has the library's own.
 */
public interface SyncProvider {
  /**
   * {@return a new builder with defaults, for {@link GradientSync#builder}} Any thread may call it.
   */
  GradientSync.Builder builder();
}
