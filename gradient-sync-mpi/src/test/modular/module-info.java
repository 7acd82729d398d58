module sample {
  requires org.gradientsync.core;
}
