package org.gradientsync.tcp;

import java.util.concurrent.ExecutionException;
import java.util.function.UnaryOperator;
import org.gradientsync.GradientSync;
import org.gradientsync.GradientSyncException;
import org.gradientsync.local.LocalRanks;
import org.gradientsync.test.contract.SurvivorsContract;

/** The contract of survivors over TCP, with ranks that are threads. */
class TcpSurvivorsTest extends SurvivorsContract {
  @Override
  protected GradientSync.Builder options(GradientSync.Builder builder) {
    return builder.reducer("tcp");
  }

  @Override
  protected void run(
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
