package org.gradientsync.test.example;

import java.util.function.UnaryOperator;
import org.gradientsync.GradientSync;
import org.gradientsync.local.LocalRanks.RankTask;
import org.gradientsync.test.contract.RankRunner;

/** Runs the contracts with the example's backend. */
public final class QueueRunner implements RankRunner {
  /** With 1 and 3 ranks. */
  public QueueRunner() {}

  @Override
  public int[] sizes() {
    return new int[] {1, 3};
  }

  @Override
  public void run(int ranks, UnaryOperator<GradientSync.Builder> options, RankTask task) {
    new QueueJob(ranks).run(options, task);
  }
}
