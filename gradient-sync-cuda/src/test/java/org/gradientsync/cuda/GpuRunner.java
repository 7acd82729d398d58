package org.gradientsync.cuda;

import java.util.function.UnaryOperator;
import java.util.stream.IntStream;
import org.gradientsync.GradientSync;
import org.gradientsync.contract.RankRunner;
import org.gradientsync.local.LocalRanks;
import org.gradientsync.local.LocalRanks.RankTask;

/** Ranks with a GPU each: threads of this JVM, or this process's rank under mpirun. */
final class GpuRunner implements RankRunner {
  private static final String SIZE = System.getenv("OMPI_COMM_WORLD_SIZE");

  private final String reducer;

  GpuRunner(String reducer) {
    this.reducer = reducer;
  }

  @Override
  public int[] sizes() {
    if (SIZE != null) {
      return new int[] {Integer.parseInt(SIZE)};
    }
    // Kernels of peer wait for each other, so each rank has a GPU of its own.
    int most = reducer.equals(PeerReducer.NAME) ? CudaLibrary.api().deviceCount() : 3;
    return IntStream.rangeClosed(1, Math.min(3, most)).toArray();
  }

  @Override
  public void run(int ranks, UnaryOperator<GradientSync.Builder> options, RankTask task) {
    UnaryOperator<GradientSync.Builder> all = b -> options.apply(b.device("cuda").reducer(reducer));
    if (SIZE == null) {
      LocalRanks.run(ranks, all, task);
      return;
    }
    try (GradientSync sync = all.apply(GradientSync.builder()).create()) {
      task.run(sync);
    } catch (RuntimeException | Error e) {
      throw e;
    } catch (Exception e) {
      throw new IllegalStateException(e);
    }
  }
}
