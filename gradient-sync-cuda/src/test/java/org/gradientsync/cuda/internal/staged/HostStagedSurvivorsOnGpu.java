package org.gradientsync.cuda.internal.staged;

import org.gradientsync.GradientSync;
import org.gradientsync.test.contract.SurvivorsContract;

/** Runs the contract of survivors with {@code host-staged} on real GPUs, which the ranks share. */
class HostStagedSurvivorsOnGpu extends SurvivorsContract {
  @Override
  protected GradientSync.Builder options(GradientSync.Builder builder) {
    return builder.device("cuda").reducer("host-staged");
  }
}
