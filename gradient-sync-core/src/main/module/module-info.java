/** The engine behind {@code org.gradientsync}, and ranks as threads of one JVM. */
module org.gradientsync.core {
  requires transitive org.gradientsync;
  requires org.slf4j;
  requires static jdk.jfr;
  requires static jdk.unsupported; // sun.misc.Signal

  exports org.gradientsync.elastic;
  exports org.gradientsync.hooks;
  exports org.gradientsync.local;
  exports org.gradientsync.core.backend;

  uses org.gradientsync.spi.Launcher;
  uses org.gradientsync.spi.DeviceProvider;
  uses org.gradientsync.spi.ReducerProvider;

  provides org.gradientsync.spi.DeviceProvider with
      org.gradientsync.core.host.HostDeviceProvider;
  provides org.gradientsync.spi.ReducerProvider with
      org.gradientsync.core.local.LocalReducerProvider,
      org.gradientsync.core.collectives.shared.SharedMemoryReducerProvider,
      org.gradientsync.core.collectives.nodes.TwoLevelReducerProvider,
      org.gradientsync.core.selection.TwoLevelGpuReducerProvider;
  provides org.gradientsync.spi.SyncProvider with
      org.gradientsync.core.sync.CoreSyncProvider;
}
