module sample {
  requires org.gradientsync;
}
