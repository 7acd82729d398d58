package org.gradientsync.core.local;

import org.gradientsync.core.collectives.messages.MessageReducer;
import org.gradientsync.core.host.HostDevice;
import org.gradientsync.spi.Availability;
import org.gradientsync.spi.Reducer;
import org.gradientsync.spi.ReducerProvider;
import org.gradientsync.spi.SyncContext;

/** Provides {@code local}, the reducer for threads of one JVM and host memory. */
public final class LocalReducerProvider implements ReducerProvider {
  /** For the service loader. */
  public LocalReducerProvider() {}

  @Override
  public String name() {
    return LocalTransport.NAME;
  }

  @Override
  public int priority() {
    return 50;
  }

  @Override
  public Availability availability(SyncContext context) {
    if (!context.group().transport().name().equals(LocalTransport.NAME)) {
      return Availability.no(
          "the ranks are not threads of one JVM: launcher=" + context.group().transport().name());
    }
    if (!context.device().kind().equals(HostDevice.KIND)) {
      return Availability.no(
          "the gradients are not in host memory: device=" + context.device().kind());
    }
    return Availability.yes();
  }

  @Override
  public Reducer create(SyncContext context) {
    return new MessageReducer(name(), context.group(), context.device());
  }
}
