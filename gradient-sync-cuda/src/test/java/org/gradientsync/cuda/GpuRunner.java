package org.gradientsync.cuda;

import java.util.function.UnaryOperator;
import java.util.stream.IntStream;
import org.gradientsync.GradientSync;
import org.gradientsync.cuda.internal.driver.CudaLibrary;
import org.gradientsync.cuda.internal.driver.DriverAccess;
import org.gradientsync.cuda.internal.driver.GpuKernels;
import org.gradientsync.local.LocalRanks;
import org.gradientsync.local.LocalRanks.RankTask;
import org.gradientsync.test.contract.RankRunner;

/**
 * Runs ranks with a GPU each, as threads of this JVM, or this process as one rank under mpirun.
 * With a single GPU, two threads share it.
 */
public final class GpuRunner implements RankRunner {
  private static final String SIZE = System.getenv("OMPI_COMM_WORLD_SIZE");

  private final String reducer;
  private final String algorithm;

  public GpuRunner(String reducer) {
    this(reducer, null);
  }

  /** Runs with one algorithm of {@code peer}, whatever the size. */
  public GpuRunner(String reducer, String algorithm) {
    this.reducer = reducer;
    this.algorithm = algorithm;
  }

  /**
   * Returns the numbers of ranks to run as threads with {@code peer}: up to one per GPU. With a
   * single GPU, two ranks share it, and this method turns on sharing for all syncs of this JVM.
   */
  public static IntStream peerSizes(int most) {
    int gpus = CudaLibrary.api().deviceCount();
    if (gpus == 1) {
      // also for syncs that the tests create
      System.setProperty("gradientsync.dev.peer.sharing", "on");
    }
    return IntStream.rangeClosed(1, Math.min(most, Math.max(2, gpus)));
  }

  /** Returns whether the ranks of {@link #peerSizes} share a GPU. */
  public static boolean areShared() {
    return SIZE == null && CudaLibrary.api().deviceCount() == 1;
  }

  @Override
  public int[] sizes() {
    if (SIZE != null) {
      return new int[] {Integer.parseInt(SIZE)};
    }
    if (reducer.equals("nccl")) { // which wants a GPU for each thread
      return IntStream.rangeClosed(1, Math.min(4, CudaLibrary.api().deviceCount())).toArray();
    }
    boolean peer = reducer.equals("peer");
    return (peer ? peerSizes(3) : IntStream.rangeClosed(1, 3)).toArray();
  }

  @Override
  public void run(int ranks, UnaryOperator<GradientSync.Builder> options, RankTask task) {
    UnaryOperator<GradientSync.Builder> all = b -> options.apply(configured(b));
    if (SIZE == null) {
      LocalRanks.run(
          ranks,
          all,
          sync -> {
            if (areShared()) {
              loadKernels(sync);
            }
            task.run(sync);
          });
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

  /** Loads kernels before any rank runs one, because loading waits for all kernels of the GPU. */
  private static void loadKernels(GradientSync sync) {
    GpuKernels kernels = DriverAccess.gpu((CudaDevice) sync.device()).kernels();
    kernels.reduce();
    kernels.copy();
    kernels.finite();
    kernels.norm();
    sync.communicator().barrier();
  }

  private GradientSync.Builder configured(GradientSync.Builder builder) {
    builder.device("cuda").reducer(reducer);
    return algorithm == null ? builder : builder.set("dev.peer.algorithm", algorithm);
  }
}
