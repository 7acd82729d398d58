package org.gradientsync.test.contract;

/** The contract of collectives, with ranks as threads. */
class LocalCollectivesTest extends CollectivesContract {
  @Override
  protected RankRunner runner() {
    return new LocalRunner(1, 2, 3, 5); // four ranks: as processes
  }
}
