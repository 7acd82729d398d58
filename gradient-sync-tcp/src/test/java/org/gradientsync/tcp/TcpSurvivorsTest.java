package org.gradientsync.tcp;

import java.util.concurrent.ExecutionException;
import java.util.function.UnaryOperator;
import org.gradientsync.GradientSync;
import org.gradientsync.GradientSyncException;
import org.gradientsync.local.LocalRanks;
import org.gradientsync.test.contract.RankRunner;
import org.gradientsync.test.contract.SurvivorsContract;

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

  private static final class Runner implements RankRunner {
    @Override
    public int[] sizes() {
      return new int[] {2, 3, 4, 5, 6};
    }

    @Override
    public void run(
        int ranks, UnaryOperator<GradientSync.Builder> options, LocalRanks.RankTask task) {
      try {
        ThreadRanks.run(
            Ranks.freePort(),
            ranks,
            (rank, builder) -> {
              try (GradientSync sync = options.apply(builder).create()) {
                task.run(sync);
              } catch (Lost e) {
                return null; // on purpose
              }
              return null;
            });
      } catch (ExecutionException e) {
        if (e.getCause() instanceof GradientSyncException failure) {
          throw failure;
        }
        throw new GradientSyncException("a rank failed: " + e.getCause(), e.getCause());
      } catch (Exception e) {
        throw new GradientSyncException("the ranks cannot run: " + e, e);
      }
    }
  }
}
