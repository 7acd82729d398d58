package org.gradientsync.test.example;

import java.util.function.IntFunction;
import org.gradientsync.GradientSync;
import org.gradientsync.test.contract.ThreadRunner;

/** Runs the contracts with the example's backend. */
public final class QueueRunner extends ThreadRunner {
  /** With 1 and 3 ranks. */
  public QueueRunner() {
    super(1, 3);
  }

  @Override
  protected IntFunction<GradientSync.Builder> builders(int ranks) {
    QueueJob job = new QueueJob();
    return rank -> {
      QueueLauncher.OF_THREAD.set(new QueueTransport(QueueLauncher.NAME, rank, ranks, job));
      return GradientSync.builder();
    };
  }
}
