/** Data-parallel training with Deep Java Library: one listener. */
module org.gradientsync.djl {
  requires transitive ai.djl.api;
  requires transitive org.gradientsync.core;
  requires org.slf4j;
  requires static com.sun.jna;
  requires static org.gradientsync.cuda;

  exports org.gradientsync.djl;
}
