package org.gradientsync.test.contract;

import java.util.function.UnaryOperator;
import org.gradientsync.GradientSync;
import org.gradientsync.local.LocalRanks.RankTask;

/** How a backend brings ranks to life for the contract tests. */
public interface RankRunner {
  /**
   * The numbers of ranks that a test can be run with.
   *
   * @return one or more sizes
   */
  int[] sizes();

  /**
   * Runs a task as every rank, each with a sync of its own that is closed afterwards. Under a
   * launcher that gave this process one rank, runs it as that rank, at the same time as the other
   * processes do.
   *
   * @param ranks one of {@link #sizes()}
   * @param options sets what each sync is built with
   * @param task the task
   */
  void run(int ranks, UnaryOperator<GradientSync.Builder> options, RankTask task);

  /**
   * Runs a task with no options.
   *
   * @param ranks one of {@link #sizes()}
   * @param task the task
   */
  default void run(int ranks, RankTask task) {
    run(ranks, UnaryOperator.identity(), task);
  }
}
