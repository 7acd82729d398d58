package org.gradientsync.core.sync;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.function.Function;
import org.gradientsync.GradientSync;
import org.gradientsync.core.backend.WaitingFile;
import org.gradientsync.core.group.ProcessGroup;
import org.gradientsync.core.selection.Selection;
import org.gradientsync.spi.CallInterceptor;
import org.gradientsync.spi.Resources;
import org.gradientsync.spi.Settings;

/** Builds syncs. */
public final class SyncBuilder extends GradientSync.Builder implements CallInterceptor.Installer {
  private final Map<String, String> chosen = new LinkedHashMap<>();
  private ProcessGroup world;
  private Function<GradientSync, CallInterceptor> interceptor;

  /** Casts a builder to the only implementation. */
  public static SyncBuilder of(GradientSync.Builder builder) {
    return (SyncBuilder) builder;
  }

  @Override
  public SyncBuilder set(String name, String value) {
    Objects.requireNonNull(name, "name");
    chosen.put(name, Objects.requireNonNull(value, name));
    return this;
  }

  @Override
  public SyncBuilder interceptor(Function<GradientSync, CallInterceptor> newInterceptor) {
    this.interceptor = Objects.requireNonNull(newInterceptor, "interceptor");
    return this;
  }

  /**
   * Sets the job's ranks, instead of looking for a launcher. For LocalRanks and tests.
   *
   * @param newWorld all ranks of the job; the caller closes it
   */
  public SyncBuilder ranks(ProcessGroup newWorld) {
    this.world = Objects.requireNonNull(newWorld, "world");
    return this;
  }

  @Override
  public GradientSync create() {
    Settings settings = new Settings(chosen);
    boolean stopOnSignal = settings.stopOnSignal();
    Selection selection = new Selection(settings);
    Selection.Choice choice = selection.choose(world);
    GradientSyncImpl sync;
    try {
      sync = new GradientSyncImpl(selection, choice, null);
    } catch (RuntimeException | Error e) {
      Resources.closeAllAfter(e, choice.reducer(), choice.device(), choice.communicator());
      throw e;
    }
    try {
      if (interceptor != null) {
        sync.intercept(interceptor.apply(sync));
      }
      if (stopOnSignal) {
        sync.stopOnSignal();
      }
    } catch (RuntimeException | Error e) {
      Resources.closeAllAfter(e, sync);
      throw e;
    }
    if (world == null) {
      WaitingFile.takePart();
    }
    return sync;
  }
}
