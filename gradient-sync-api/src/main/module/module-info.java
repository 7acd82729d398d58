/** Data-parallel gradient synchronization: what training code uses, and what a backend implements. */
module org.gradientsync {
  requires org.slf4j;

  exports org.gradientsync;
  exports org.gradientsync.spi;

  uses org.gradientsync.spi.SyncProvider;
}
