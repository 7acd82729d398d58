package org.gradientsync.cuda.internal.peer;

import org.gradientsync.cuda.GpuRunner;
import org.gradientsync.test.contract.CollectivesContract;
import org.gradientsync.test.contract.RankRunner;

/** Runs the contract of collectives with {@code peer} where no blocks go in lines. */
class PeerLargeCollectivesOnGpu extends CollectivesContract {
  @Override
  protected RankRunner runner() {
    return new GpuRunner(PeerReducer.NAME, "stream");
  }

  /** The ranks also compare whether each has registered the buffer. */
  @Override
  protected boolean keepsBroadcasts() {
    return false;
  }
}
