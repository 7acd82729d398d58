package org.gradientsync.test.contract;

/** Runs the compression contract with ranks as threads. */
class LocalCompressionTest extends CompressionContract {
  @Override
  protected RankRunner runner() {
    return new LocalRunner(1, 2, 3, 5);
  }
}
