package org.gradientsync.test.contract;

/** The contract of calls in groups, with ranks as threads. */
class LocalGroupedCallsTest extends GroupedCallsContract {
  @Override
  protected RankRunner runner() {
    return new LocalRunner(1, 2, 3, 5);
  }
}
