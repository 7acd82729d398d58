package org.gradientsync.cuda.internal.peer;

import java.util.Arrays;
import java.util.List;
import org.gradientsync.Communicator;
import org.gradientsync.DataType;
import org.gradientsync.ReduceOp;
import org.gradientsync.core.backend.Agreement;
import org.gradientsync.cuda.internal.driver.GpuStream;
import org.gradientsync.spi.Settings;

/**
 * Ranks of one process that share a GPU, as in tests on machines with few GPUs. Their kernels run
 * at the same time, each on its part of the GPU, and wait for each other. When the driver loads a
 * kernel or makes a graph, it may wait for another rank's kernel, which waits for this rank's. So
 * no rank plans while any rank's kernel may run.
 */
final class PeerSharing {
  /** The developer switch that allows sharing. */
  static final String SWITCH = "dev.peer.sharing";

  private final int sharers;
  private final int turn;

  /**
   * @param gpus each rank's GPU, by rank; equal for ranks that share one
   */
  PeerSharing(List<?> gpus, int rank) {
    int most = 0;
    for (int i = 0; i < gpus.size(); i++) {
      most = Math.max(most, lowerOnSame(gpus, i) + 1);
    }
    sharers = most;
    turn = lowerOnSame(gpus, rank);
  }

  private static int lowerOnSame(List<?> gpus, int rank) {
    return (int) gpus.subList(0, rank).stream().filter(gpus.get(rank)::equals).count();
  }

  static boolean isAllowed(Settings settings) {
    return settings.isOn(SWITCH, false);
  }

  /** The reason why two ranks cannot share a GPU, or an empty text if they can. */
  static String obstacle(boolean allowed, boolean sameProcess) {
    return allowed && sameProcess ? "" : "they share a GPU";
  }

  /** The index of this rank's part of its GPU: the number of lower ranks with the same GPU. */
  int turn() {
    return turn;
  }

  /** The number of SMs of a rank's part of a GPU. */
  int part(int ofGpu) {
    return ofGpu / sharers;
  }

  /** A GPU's name for measurements, which differ if ranks share GPUs. */
  String nameOf(String gpu) {
    return isShared() ? gpu + " shared" : gpu;
  }

  /**
   * The operations to plan before a buffer's first call: all if ranks share GPUs. Otherwise only
   * AVERAGE, or SUM for integers; the rest are planned on demand.
   */
  List<ReduceOp> plannedFirst(DataType type) {
    if (!isShared()) {
      return List.of(type.isFloatingPoint() ? ReduceOp.AVERAGE : ReduceOp.SUM);
    }
    return Arrays.stream(ReduceOp.values()).filter(op -> op.isDefinedFor(type)).toList();
  }

  /**
   * Called after planning during a call. If ranks share GPUs, waits until all ranks have planned.
   */
  void planned(Communicator communicator) {
    if (isShared()) {
      Agreement.requireAll(communicator, "");
    }
  }

  /**
   * Called before a sync creates its streams. If ranks share GPUs, each stream runs a kernel before
   * its first call.
   *
   * @param own the device's stream, which exists already
   */
  void prepareStreams(GpuStream own) {
    if (isShared()) {
      own.gpu().warmUpStreams();
      own.warmUp();
    }
  }

  private boolean isShared() {
    return sharers > 1;
  }
}
