package org.gradientsync.local;

import org.gradientsync.contract.CommunicatorContract;
import org.gradientsync.contract.RankRunner;

/** The communicator contract, with ranks as threads. */
class LocalCommunicatorTest extends CommunicatorContract {
  @Override
  protected RankRunner runner() {
    return new LocalRunner();
  }
}
