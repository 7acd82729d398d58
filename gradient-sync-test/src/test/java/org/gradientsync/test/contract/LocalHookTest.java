package org.gradientsync.test.contract;

/** Runs the contract of hooks with ranks as threads. */
class LocalHookTest extends HookContract {
  @Override
  protected RankRunner runner() {
    return new LocalRunner(2, 3);
  }
}
