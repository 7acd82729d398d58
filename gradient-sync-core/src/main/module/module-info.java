/** The engine behind {@code org.gradientsync}, and ranks as threads of one JVM. */
module org.gradientsync.core {
  requires transitive org.gradientsync;
  requires org.slf4j;
  requires static jdk.jfr;

  exports org.gradientsync.local;
  exports org.gradientsync.internal.buckets to
      org.gradientsync.djl;
  exports org.gradientsync.internal.collectives to
      org.gradientsync.cuda,
      org.gradientsync.mpi;
  exports org.gradientsync.internal.group to
      org.gradientsync.cuda,
      org.gradientsync.mpi;
  exports org.gradientsync.internal.host to
      org.gradientsync.cuda,
      org.gradientsync.mpi;
  exports org.gradientsync.internal.launch to
      org.gradientsync.mpi;
  exports org.gradientsync.internal.matching to
      org.gradientsync.cuda;
  exports org.gradientsync.internal.ranks to
      org.gradientsync.cuda,
      org.gradientsync.mpi;
  exports org.gradientsync.internal.selection to
      org.gradientsync.cuda,
      org.gradientsync.mpi;

  uses org.gradientsync.spi.Launcher;
  uses org.gradientsync.spi.DeviceProvider;
  uses org.gradientsync.spi.ReducerProvider;

  provides org.gradientsync.spi.DeviceProvider with
      org.gradientsync.internal.host.HostDeviceProvider;
  provides org.gradientsync.spi.ReducerProvider with
      org.gradientsync.internal.local.LocalReducerProvider,
      org.gradientsync.internal.collectives.SharedMemoryReducerProvider,
      org.gradientsync.internal.collectives.TwoLevelReducerProvider;
  provides org.gradientsync.spi.SyncProvider with
      org.gradientsync.internal.sync.CoreSyncProvider;
}
