package org.gradientsync.test.contract;

import java.io.IOException;
import java.util.concurrent.CompletionService;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorCompletionService;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.function.IntFunction;
import java.util.function.UnaryOperator;
import org.gradientsync.GradientSync;
import org.gradientsync.GradientSyncException;
import org.gradientsync.local.LocalRanks.RankTask;

/** Runs ranks as threads of this JVM that a backend joins, each with a builder of its own. */
public abstract class ThreadRunner implements RankRunner {
  private static final long MOST_SECONDS = 30;

  private final int[] sizes;

  /**
   * Creates a runner.
   *
   * @param sizes one or more numbers of ranks
   */
  protected ThreadRunner(int... sizes) {
    this.sizes = sizes.clone();
  }

  /**
   * Begins a job.
   *
   * @param ranks how many it has
   * @return makes the builder of each rank; called on the rank's thread
   * @throws IOException if there can be no job
   */
  protected abstract IntFunction<GradientSync.Builder> builders(int ranks) throws IOException;

  @Override
  public int[] sizes() {
    return sizes.clone();
  }

  /**
   * Throws what the first rank that fails has thrown, and interrupts the others.
   *
   * @throws GradientSyncException that one, or with it as the cause
   */
  @Override
  public void run(int ranks, UnaryOperator<GradientSync.Builder> options, RankTask task) {
    ExecutorService threads = Executors.newFixedThreadPool(ranks);
    CompletionService<Void> ended = new ExecutorCompletionService<>(threads);
    try {
      IntFunction<GradientSync.Builder> builders = builders(ranks);
      for (int i = 0; i < ranks; i++) {
        int rank = i;
        ended.submit(
            () -> {
              try (GradientSync sync = options.apply(builders.apply(rank)).create()) {
                task.run(sync);
              }
              return null;
            });
      }
      for (int i = 0; i < ranks; i++) {
        ended.take().get();
      }
    } catch (ExecutionException e) {
      throw e.getCause() instanceof GradientSyncException failure
          ? failure
          : new GradientSyncException("a rank failed: " + e.getCause(), e.getCause());
    } catch (IOException e) {
      throw new GradientSyncException("no job can begin: " + e, e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new GradientSyncException("interrupted while ranks ran: ranks=" + ranks, e);
    } finally {
      end(threads);
    }
  }

  /** Interrupts the ranks that are left after a failure, and waits until they have ended. */
  private static void end(ExecutorService threads) {
    threads.shutdownNow();
    try {
      threads.awaitTermination(MOST_SECONDS, TimeUnit.SECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
