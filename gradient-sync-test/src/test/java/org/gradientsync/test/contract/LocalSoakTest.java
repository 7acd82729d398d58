package org.gradientsync.test.contract;

/** Makes random calls with ranks as threads. */
class LocalSoakTest extends SoakContract {
  LocalSoakTest() {
    super(4);
  }

  @Override
  protected RankRunner runner() {
    return new LocalRunner(2, 3);
  }
}
