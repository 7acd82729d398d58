/** The engine behind {@code org.gradientsync}, and ranks as threads of one JVM. */
module org.gradientsync.core {
  requires transitive org.gradientsync;
  requires org.slf4j;
  requires static jdk.jfr;

  exports org.gradientsync.local;
  exports org.gradientsync.core.buckets to
      org.gradientsync.djl;
  exports org.gradientsync.core.collectives to
      org.gradientsync.cuda,
      org.gradientsync.mpi;
  exports org.gradientsync.core.group to
      org.gradientsync.cuda,
      org.gradientsync.mpi;
  exports org.gradientsync.core.host to
      org.gradientsync.cuda,
      org.gradientsync.mpi;
  exports org.gradientsync.core.launch to
      org.gradientsync.mpi;
  exports org.gradientsync.core.matching to
      org.gradientsync.cuda;
  exports org.gradientsync.core.ranks to
      org.gradientsync.cuda,
      org.gradientsync.mpi;
  exports org.gradientsync.core.selection to
      org.gradientsync.cuda,
      org.gradientsync.mpi;

  uses org.gradientsync.spi.Launcher;
  uses org.gradientsync.spi.DeviceProvider;
  uses org.gradientsync.spi.ReducerProvider;

  provides org.gradientsync.spi.DeviceProvider with
      org.gradientsync.core.host.HostDeviceProvider;
  provides org.gradientsync.spi.ReducerProvider with
      org.gradientsync.core.local.LocalReducerProvider,
      org.gradientsync.core.collectives.SharedMemoryReducerProvider,
      org.gradientsync.core.collectives.TwoLevelReducerProvider;
  provides org.gradientsync.spi.SyncProvider with
      org.gradientsync.core.sync.CoreSyncProvider;
}
