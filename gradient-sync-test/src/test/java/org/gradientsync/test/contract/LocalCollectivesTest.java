package org.gradientsync.test.contract;

/** The contract of collectives, with ranks as threads. */
class LocalCollectivesTest extends CollectivesContract {
  @Override
  protected RankRunner runner() {
    return new LocalRunner();
  }
}
