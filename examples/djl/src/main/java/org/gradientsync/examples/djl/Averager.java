package org.gradientsync.examples.djl;

/** A way to average the gradients that DJL has computed. */
interface Averager extends AutoCloseable {
  /** Makes DJL's gradients the averages over all ranks. After each backward pass; collective. */
  void average();

  @Override
  void close();
}
