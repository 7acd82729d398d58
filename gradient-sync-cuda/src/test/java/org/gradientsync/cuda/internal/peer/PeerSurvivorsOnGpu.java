package org.gradientsync.cuda.internal.peer;

import org.gradientsync.GradientSync;
import org.gradientsync.test.contract.SurvivorsContract;

/** Runs the contract of survivors with {@code peer} on real GPUs, which the ranks share. */
class PeerSurvivorsOnGpu extends SurvivorsContract {
  @Override
  protected GradientSync.Builder options(GradientSync.Builder builder) {
    return builder.device("cuda").reducer(PeerReducer.NAME).set("dev.peer.sharing", "on");
  }
}
