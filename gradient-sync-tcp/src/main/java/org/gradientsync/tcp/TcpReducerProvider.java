package org.gradientsync.tcp;

import java.util.Set;
import org.gradientsync.spi.Availability;
import org.gradientsync.spi.Reducer;
import org.gradientsync.spi.ReducerParts;
import org.gradientsync.spi.ReducerProvider;
import org.gradientsync.spi.SyncContext;

/** Provides {@code tcp}, which sends host memory over TCP and adds on the CPU. */
public final class TcpReducerProvider implements ReducerProvider {
  /** For the service loader. */
  public TcpReducerProvider() {}

  @Override
  public String name() {
    return TcpLauncher.NAME;
  }

  @Override
  public Set<String> settings() {
    return Coordinates.SETTINGS;
  }

  @Override
  public int priority() {
    return 100;
  }

  @Override
  public Availability availability(SyncContext context) {
    String launcher = context.group().transport().name();
    if (!launcher.equals(TcpLauncher.NAME)) {
      return Availability.no("the ranks do not reach each other by TCP: launcher=" + launcher);
    }
    if (!context.device().kind().equals("host")) {
      return Availability.no(
          "the gradients are not in host memory: device=" + context.device().kind());
    }
    return Availability.yes();
  }

  @Override
  public Reducer create(SyncContext context) {
    return context.parts().overMessages(context, name(), ReducerParts.HOST_CHUNK_BYTES);
  }
}
