package org.gradientsync.test.contract;

import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import org.gradientsync.GradientSync;
import org.gradientsync.local.LocalRanks.RankTask;

/**
 * Runs this process as one rank of a job that Open MPI, MPICH or torchrun's variables have started,
 * with host memory. A job's ranks are started by {@link RankTests}.
 */
public final class ProcessRunner implements RankRunner {
  private static final String[] RANKS = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "RANK"};
  private static final String[] SIZES = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "WORLD_SIZE"};

  private final String reducer;
  private final String rendezvous;

  /**
   * Creates a runner.
   *
   * @param reducer the reducer of each sync
   */
  public ProcessRunner(String reducer) {
    this(reducer, "");
  }

  /**
   * Creates a runner.
   *
   * @param reducer the reducer of each sync
   * @param rendezvous {@code messages}, as on several nodes, or an empty text
   */
  public ProcessRunner(String reducer, String rendezvous) {
    this.reducer = reducer;
    this.rendezvous = rendezvous;
  }

  /** This process's rank in its job. */
  static int rank() {
    return variable(RANKS);
  }

  private static int variable(String[] names) {
    return Stream.of(names)
        .map(System::getenv)
        .filter(value -> value != null)
        .mapToInt(Integer::parseInt)
        .findFirst()
        .orElseThrow(
            () ->
                new IllegalStateException(
                    "this process is no rank of a job: none of these variables is set: "
                        + String.join(", ", names)));
  }

  @Override
  public int[] sizes() {
    return new int[] {variable(SIZES)};
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
