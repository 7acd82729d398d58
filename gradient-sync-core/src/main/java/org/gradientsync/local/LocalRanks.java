package org.gradientsync.local;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Objects;
import java.util.function.UnaryOperator;
import org.gradientsync.GradientSync;
import org.gradientsync.GradientSyncException;
import org.gradientsync.core.backend.LauncherVariables;
import org.gradientsync.core.local.LocalWorld;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The embedded backend: runs ranks as threads of this JVM.
 *
 * <pre>{@code
 * LocalRanks.run(4, sync -> {
 *   float[] gradient = computeGradient(sync.rank());
 *   sync.average(gradient);
 *   ...
 * });
 * }</pre>
 */
public final class LocalRanks {
  /** The largest number of ranks in one JVM. */
  public static final int MAX_RANKS = 256;

  private static final Duration GRACE = Duration.ofSeconds(10);
  private static final Logger log = LoggerFactory.getLogger(LocalRanks.class);

  private LocalRanks() {}

  /** The program of a rank. */
  @FunctionalInterface
  public interface RankTask {
    /**
     * Runs as one rank.
     *
     * @param sync this rank's sync, which is closed when the task returns
     * @throws Exception to end all ranks
     */
    void run(GradientSync sync) throws Exception;
  }

  /**
   * The program of a rank that has a result.
   *
   * @param <T> the type of the result
   */
  @FunctionalInterface
  public interface RankCall<T> {
    /**
     * Runs as one rank.
     *
     * @param sync this rank's sync, which is closed when the task returns
     * @return the rank's result, or null
     * @throws Exception to end all ranks
     */
    T call(GradientSync sync) throws Exception;
  }

  /**
   * Runs a task on several ranks, and returns when all have finished.
   *
   * <p>When a rank fails, for example with a time-out, the calls of the others that wait end at
   * once and their threads are interrupted. If a rank ignores the interrupt for ten seconds, in an
   * endless loop or in native code, this method throws and leaves the rank's daemon thread running.
   * That thread's calls that wait for another rank throw.
   *
   * @param ranks the number of ranks, from 1 to {@value #MAX_RANKS}
   * @param task the program of each rank, which runs on a thread of its own
   * @throws GradientSyncException if a rank threw: the first exception if it is a {@link
   *     GradientSyncException}, otherwise one with the rank in its message and the first exception
   *     as cause. Also if the calling thread is interrupted, unless all ranks succeed nevertheless.
   *     For each thread that is left running, a suppressed exception has its name and current stack
   *     trace. Not thrown if the others go on without the rank, as {@link GradientSync#survivors}
   *     says, and end well: then its exception is logged
   * @throws IllegalArgumentException if the number of ranks is out of range
   */
  public static void run(int ranks, RankTask task) {
    run(ranks, UnaryOperator.identity(), task);
  }

  /**
   * {@link #run(int, RankTask)} with settings.
   *
   * @param ranks the number of ranks, from 1 to {@value #MAX_RANKS}
   * @param options sets options of each rank's sync; called once for each rank, on its thread
   * @param task the program of each rank, which runs on a thread of its own
   */
  public static void run(int ranks, UnaryOperator<GradientSync.Builder> options, RankTask task) {
    Objects.requireNonNull(options, "options");
    Objects.requireNonNull(task, "task");
    requireInRange(ranks);
    warnIfLaunched(ranks);
    LocalWorld.duringRun(new LocalRun(ranks, options, task, GRACE)::run);
  }

  /**
   * Runs a task on several ranks like {@link #run(int, RankTask)}, and returns their results.
   *
   * <pre>{@code
   * List<Double> losses = LocalRanks.call(4, sync -> train(sync));
   * }</pre>
   *
   * @param ranks the number of ranks, from 1 to {@value #MAX_RANKS}
   * @param task the program of each rank, which runs on a thread of its own
   * @return each rank's result, in the order of the ranks, null for one that the others have gone
   *     on without; cannot be modified
   * @param <T> the type of the results, which may be null
   * @throws GradientSyncException if a rank threw, as for {@link #run(int, RankTask)}
   * @throws IllegalArgumentException if the number of ranks is out of range
   */
  public static <T> List<T> call(int ranks, RankCall<T> task) {
    return call(ranks, UnaryOperator.identity(), task);
  }

  /**
   * {@link #call(int, RankCall)} with settings.
   *
   * @param ranks the number of ranks, from 1 to {@value #MAX_RANKS}
   * @param options sets options of each rank's sync; called once for each rank, on its thread
   * @param task the program of each rank, which runs on a thread of its own
   * @return each rank's result, in the order of the ranks; cannot be modified
   * @param <T> the type of the results, which may be null
   */
  public static <T> List<T> call(
      int ranks, UnaryOperator<GradientSync.Builder> options, RankCall<T> task) {
    Objects.requireNonNull(task, "task");
    requireInRange(ranks);
    List<T> results = new ArrayList<>(Collections.nCopies(ranks, null));
    run(ranks, options, sync -> results.set(sync.rank(), task.call(sync)));
    return Collections.unmodifiableList(results);
  }

  private static void requireInRange(int ranks) {
    if (ranks < 1 || ranks > MAX_RANKS) {
      throw new IllegalArgumentException(
          "number of ranks is out of range: ranks=" + ranks + ", from=1, to=" + MAX_RANKS);
    }
  }

  private static void warnIfLaunched(int ranks) {
    LauncherVariables.ofProcess()
        .job()
        .ifPresent(
            job ->
                log.warn(
                    "LocalRanks.run({}) in each of {} processes that {} started: each has a job of its"
                        + " own, and averages with none of the others; use GradientSync.create()"
                        + " there",
                    ranks,
                    job.size(),
                    job.launcher()));
  }
}
