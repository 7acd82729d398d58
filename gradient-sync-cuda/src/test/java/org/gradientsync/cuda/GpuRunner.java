package org.gradientsync.cuda;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.function.UnaryOperator;
import java.util.stream.IntStream;
import org.gradientsync.GradientSync;
import org.gradientsync.contract.RankRunner;
import org.gradientsync.local.LocalRanks;
import org.gradientsync.local.LocalRanks.RankTask;

/**
 * Ranks with a GPU each, threads of this JVM, or this process's rank under mpirun. Where there is
 * one GPU only, two threads share it.
 */
final class GpuRunner implements RankRunner {
  private static final String SIZE = System.getenv("OMPI_COMM_WORLD_SIZE");

  private final String reducer;

  GpuRunner(String reducer) {
    this.reducer = reducer;
  }

  /**
   * The numbers of ranks that are threads with {@code peer}: up to one for each GPU, or two where
   * there is one GPU only, which all syncs of this JVM may then share.
   */
  static IntStream peerSizes(int most) {
    int gpus = CudaLibrary.api().deviceCount();
    if (gpus == 1) {
      System.setProperty("gradientsync.peer.sharing", "on"); // for the tests' own syncs, too
    }
    return IntStream.rangeClosed(1, Math.min(most, Math.max(2, gpus)));
  }

  /**
   * Requires a rank's sync to be the first one on its GPU, or on the part of it that the rank has
   * where threads share it: the others' kernels beside other work are not {@code wide} or {@code
   * staged}, and hand nothing over.
   */
  static void requireLargestShare(GradientSync sync) {
    CudaDevice device = (CudaDevice) sync.device();
    int turn = SIZE == null ? sync.rank() / DriverAccess.gpu(device).api().deviceCount() : 0;
    try (PeerBudget.Share next = PeerBudget.take(device.ordinal(), turn)) {
      assertEquals(1, next.place(), "the place of a second sync on this GPU");
    }
  }

  /** Whether the ranks of {@link #peerSizes} share a GPU. */
  static boolean areShared() {
    return SIZE == null && CudaLibrary.api().deviceCount() == 1;
  }

  @Override
  public int[] sizes() {
    if (SIZE != null) {
      return new int[] {Integer.parseInt(SIZE)};
    }
    boolean peer = reducer.equals(PeerReducer.NAME);
    return (peer ? peerSizes(3) : IntStream.rangeClosed(1, 3)).toArray();
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
