package org.gradientsync.test.contract;

import org.gradientsync.GradientSync;

/** The contract of survivors, in host memory. */
class LocalSurvivorsTest extends SurvivorsContract {
  @Override
  protected GradientSync.Builder options(GradientSync.Builder builder) {
    return builder.device("host");
  }
}
