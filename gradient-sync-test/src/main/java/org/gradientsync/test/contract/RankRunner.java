package org.gradientsync.test.contract;

import java.util.function.UnaryOperator;
import org.gradientsync.GradientSync;
import org.gradientsync.local.LocalRanks.RankTask;

/** Starts the ranks of a backend for the contract tests. */
public interface RankRunner {
  /** {@return one or more numbers of ranks that tests can run with} */
  int[] sizes();

  /**
   * Runs a task on every rank. Each rank gets its own sync, which is closed afterwards. If a
   * launcher started this process as one rank, runs only that rank, at the same time as the other
   * processes.
   *
   * @param ranks one of {@link #sizes()}
   * @param options sets the options of each sync
   * @param task the task
   */
  void run(int ranks, UnaryOperator<GradientSync.Builder> options, RankTask task);

  /**
   * Runs a task without options.
   *
   * @param ranks one of {@link #sizes()}
   * @param task the task
   */
  default void run(int ranks, RankTask task) {
    run(ranks, UnaryOperator.identity(), task);
  }
}
