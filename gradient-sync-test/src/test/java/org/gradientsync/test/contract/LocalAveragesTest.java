package org.gradientsync.test.contract;

/** Runs the contract of averages with ranks as threads. */
class LocalAveragesTest extends AveragesContract {
  @Override
  protected RankRunner runner() {
    return new LocalRunner(1, 2, 3);
  }
}
