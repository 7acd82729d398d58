package org.gradientsync.core.sync;

import org.gradientsync.GradientSync;
import org.gradientsync.spi.SyncProvider;

/** The library's own engine. */
public final class CoreSyncProvider implements SyncProvider {
  /** For {@link java.util.ServiceLoader}. */
  public CoreSyncProvider() {}

  @Override
  public GradientSync.Builder builder() {
    return new SyncBuilder();
  }
}
