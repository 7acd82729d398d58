package org.gradientsync.tcp;

import java.util.function.UnaryOperator;
import org.gradientsync.GradientSync;
import org.gradientsync.local.LocalRanks.RankTask;
import org.gradientsync.test.contract.RankRunner;

/** Runs this process as one rank of a job of {@link Ranks}. */
final class TcpRunner implements RankRunner {
  private final String reducer;
  private final String rendezvous;

  TcpRunner(String reducer) {
    this(reducer, "");
  }

  /**
   * Creates a runner.
   *
   * @param rendezvous {@code messages}, as on several nodes, or an empty string
   */
  TcpRunner(String reducer, String rendezvous) {
    this.reducer = reducer;
    this.rendezvous = rendezvous;
  }

  @Override
  public int[] sizes() {
    return new int[] {Integer.parseInt(System.getenv("WORLD_SIZE"))};
  }

  @Override
  public void run(int ranks, UnaryOperator<GradientSync.Builder> options, RankTask task) {
    try (GradientSync sync =
        options
            .apply(
                GradientSync.builder()
                    .device("host")
                    .reducer(reducer)
                    .set("dev.rendezvous", rendezvous))
            .create()) {
      task.run(sync);
    } catch (RuntimeException | Error e) {
      throw e;
    } catch (Exception e) {
      throw new IllegalStateException(e);
    }
  }
}
