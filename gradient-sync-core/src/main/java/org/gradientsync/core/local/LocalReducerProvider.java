package org.gradientsync.core.local;

import org.gradientsync.core.collectives.messages.MessageReducer;
import org.gradientsync.spi.MessageReducerProvider;
import org.gradientsync.spi.Reducer;
import org.gradientsync.spi.SyncContext;

/** Provides {@code local}, the reducer for threads of one JVM and host memory. */
public final class LocalReducerProvider extends MessageReducerProvider {
  /** For the service loader. */
  public LocalReducerProvider() {
    super(LocalTransport.NAME, 50, "the ranks are not threads of one JVM");
  }

  @Override
  public Reducer create(SyncContext context) {
    return new MessageReducer(
        name(), context.group(), context.device()); // threads need no other rendezvous
  }
}
