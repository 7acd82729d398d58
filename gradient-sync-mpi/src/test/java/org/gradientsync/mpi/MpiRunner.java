package org.gradientsync.mpi;

import java.util.function.UnaryOperator;
import org.gradientsync.GradientSync;
import org.gradientsync.local.LocalRanks.RankTask;
import org.gradientsync.test.contract.RankRunner;

/** Runs this process as one rank of an mpirun job, with the job's number of ranks. */
final class MpiRunner implements RankRunner {
  private final String reducer;
  private final String rendezvous;

  MpiRunner(String reducer) {
    this(reducer, "");
  }

  /**
   * Creates a runner.
   *
   * @param rendezvous {@code messages}, as on several nodes, or an empty string
   */
  MpiRunner(String reducer, String rendezvous) {
    this.reducer = reducer;
    this.rendezvous = rendezvous;
  }

  @Override
  public int[] sizes() {
    return new int[] {Integer.parseInt(variable("OMPI_COMM_WORLD_SIZE", "PMI_SIZE"))};
  }

  /** A variable that the launcher has set. */
  static String variable(String ofOpenMpi, String ofMpich) {
    String value = System.getenv(ofOpenMpi);
    return value != null ? value : System.getenv(ofMpich);
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
