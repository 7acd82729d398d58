package org.gradientsync.test.contract;

/** The communicator contract, with ranks as threads. */
class LocalCommunicatorTest extends CommunicatorContract {
  @Override
  protected RankRunner runner() {
    return new LocalRunner();
  }
}
