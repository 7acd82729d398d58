package org.gradientsync.local;

import org.gradientsync.contract.RankRunner;
import org.gradientsync.contract.ReducerContract;

/** The reducer contract, with ranks as threads. */
class LocalReducerTest extends ReducerContract {
  @Override
  protected RankRunner runner() {
    return new LocalRunner();
  }
}
