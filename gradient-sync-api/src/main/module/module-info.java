/**
 * Data-parallel gradient synchronization: what training code uses, ranks as threads of one JVM, and
 * the interfaces that a backend implements.
 */
module org.gradientsync {
  requires org.slf4j;
  requires static jdk.jfr;

  exports org.gradientsync;
  exports org.gradientsync.local;
  exports org.gradientsync.spi;
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
      org.gradientsync.cuda;

  uses org.gradientsync.spi.Launcher;
  uses org.gradientsync.spi.DeviceProvider;
  uses org.gradientsync.spi.ReducerProvider;
  uses org.gradientsync.spi.SyncProvider;

  provides org.gradientsync.spi.DeviceProvider with
      org.gradientsync.internal.host.HostDeviceProvider;
  provides org.gradientsync.spi.ReducerProvider with
      org.gradientsync.internal.local.LocalReducerProvider,
      org.gradientsync.internal.collectives.SharedMemoryReducerProvider,
      org.gradientsync.internal.collectives.TwoLevelReducerProvider;
  provides org.gradientsync.spi.SyncProvider with
      org.gradientsync.internal.sync.CoreSyncProvider;
}
