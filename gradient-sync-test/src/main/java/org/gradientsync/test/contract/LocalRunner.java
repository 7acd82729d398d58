package org.gradientsync.test.contract;

import java.util.function.UnaryOperator;
import org.gradientsync.GradientSync;
import org.gradientsync.local.LocalRanks;
import org.gradientsync.local.LocalRanks.RankTask;

/** Runs ranks as threads of this JVM. */
public final class LocalRunner implements RankRunner {
  private final int[] sizes;

  /** Runs with the numbers of ranks that usually reveal errors. */
  public LocalRunner() {
    this(1, 2, 3, 4, 7);
  }

  /**
   * Runs with the given numbers of ranks.
   *
   * @param sizes one or more numbers of ranks
   */
  public LocalRunner(int... sizes) {
    this.sizes = sizes.clone();
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
