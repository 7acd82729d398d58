package org.gradientsync.tcp;

import org.gradientsync.spi.MessageReducerProvider;

/** Provides {@code tcp}, which sends host memory over TCP and adds on the CPU. */
public final class TcpReducerProvider extends MessageReducerProvider {
  /** For the service loader. */
  public TcpReducerProvider() {
    super(TcpLauncher.NAME, 100, "the ranks do not reach each other by TCP");
  }
}
