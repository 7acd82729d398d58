/** Ranks that reach each other by TCP, with no MPI. */
module org.gradientsync.tcp {
  requires org.gradientsync.core;
  requires org.slf4j;

  exports org.gradientsync.tcp;

  provides org.gradientsync.spi.Launcher with
      org.gradientsync.tcp.TcpLauncher;
  provides org.gradientsync.spi.ReducerProvider with
      org.gradientsync.tcp.TcpReducerProvider;
}
