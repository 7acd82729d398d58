package org.gradientsync.local;

import java.util.function.UnaryOperator;
import org.gradientsync.GradientSync;
import org.gradientsync.contract.RankRunner;
import org.gradientsync.local.LocalRanks.RankTask;

/** Ranks as threads. */
final class LocalRunner implements RankRunner {
  private final int[] sizes;

  LocalRunner() {
    this(1, 2, 3, 4, 7);
  }

  LocalRunner(int... sizes) {
    this.sizes = sizes;
  }

  @Override
  public int[] sizes() {
    return sizes.clone();
  }

  @Override
  public void run(int ranks, UnaryOperator<GradientSync.Builder> options, RankTask task) {
    LocalRanks.run(ranks, options, task);
  }
}
