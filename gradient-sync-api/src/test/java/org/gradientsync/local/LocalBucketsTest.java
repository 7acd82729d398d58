package org.gradientsync.local;

import java.util.function.UnaryOperator;
import org.gradientsync.GradientSync;
import org.gradientsync.contract.BucketsContract;
import org.gradientsync.contract.RankRunner;
import org.gradientsync.local.LocalRanks.RankTask;

/** The contract of gradient buckets, with ranks as threads. */
class LocalBucketsTest extends BucketsContract {
  @Override
  protected RankRunner runner() {
    return new RankRunner() {
      @Override
      public int[] sizes() {
        return new int[] {1, 2, 3, 5};
      }

      @Override
      public void run(int ranks, UnaryOperator<GradientSync.Builder> options, RankTask task) {
        LocalRanks.run(ranks, options, task);
      }
    };
  }
}
