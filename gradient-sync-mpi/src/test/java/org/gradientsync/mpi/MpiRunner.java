package org.gradientsync.mpi;

import java.util.function.UnaryOperator;
import org.gradientsync.GradientSync;
import org.gradientsync.contract.RankRunner;
import org.gradientsync.local.LocalRanks.RankTask;

/** This process is one rank of an mpirun job; its number of ranks is the job's. */
final class MpiRunner implements RankRunner {
  private final String reducer;

  MpiRunner(String reducer) {
    this.reducer = reducer;
  }

  @Override
  public int[] sizes() {
    return new int[] {Integer.parseInt(System.getenv("OMPI_COMM_WORLD_SIZE"))};
  }

  @Override
  public void run(int ranks, UnaryOperator<GradientSync.Builder> options, RankTask task) {
    try (GradientSync sync =
        options.apply(GradientSync.builder().device("host").reducer(reducer)).create()) {
      task.run(sync);
    } catch (RuntimeException | Error e) {
      throw e;
    } catch (Exception e) {
      throw new IllegalStateException(e);
    }
  }
}
