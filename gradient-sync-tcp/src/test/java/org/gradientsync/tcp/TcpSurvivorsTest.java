package org.gradientsync.tcp;

import java.io.IOException;
import java.util.function.IntFunction;
import java.util.function.UnaryOperator;
import org.gradientsync.GradientSync;
import org.gradientsync.local.LocalRanks.RankTask;
import org.gradientsync.test.contract.RankRunner;
import org.gradientsync.test.contract.SurvivorsContract;
import org.gradientsync.test.contract.ThreadRunner;

/** The contract of survivors over TCP, with ranks that are threads. */
class TcpSurvivorsTest extends SurvivorsContract {
  @Override
  protected GradientSync.Builder options(GradientSync.Builder builder) {
    return builder.reducer("tcp");
  }

  @Override
  protected RankRunner runner() {
    return new Runner();
  }

  private static final class Runner extends ThreadRunner {
    Runner() {
      super(2, 3, 4, 5, 6);
    }

    @Override
    protected IntFunction<GradientSync.Builder> builders(int ranks) throws IOException {
      int port = Ranks.freePort();
      return rank -> ThreadRanks.builder(port, rank, ranks);
    }

    @Override
    public void run(int ranks, UnaryOperator<GradientSync.Builder> options, RankTask task) {
      super.run(
          ranks,
          options,
          sync -> {
            try {
              task.run(sync);
            } catch (Lost e) {
              // on purpose
            }
          });
    }
  }
}
