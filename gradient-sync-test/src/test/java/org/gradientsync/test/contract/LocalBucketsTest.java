package org.gradientsync.test.contract;

/** Runs the bucket contract with ranks as threads. */
class LocalBucketsTest extends BucketsContract {
  @Override
  protected RankRunner runner() {
    return new LocalRunner(1, 2, 3, 5);
  }
}
