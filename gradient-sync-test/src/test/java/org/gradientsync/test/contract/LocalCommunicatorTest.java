package org.gradientsync.test.contract;

/** Runs the communicator contract with ranks as threads. */
class LocalCommunicatorTest extends CommunicatorContract {
  @Override
  protected RankRunner runner() {
    return new LocalRunner();
  }
}
