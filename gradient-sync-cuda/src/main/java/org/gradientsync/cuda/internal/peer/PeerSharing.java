package org.gradientsync.cuda.internal.peer;

import java.util.Arrays;
import java.util.List;
import org.gradientsync.DataType;
import org.gradientsync.ReduceOp;
import org.gradientsync.internal.collectives.Agreement;
import org.gradientsync.internal.collectives.GroupCommunicator;
import org.gradientsync.spi.Settings;

/**
 * Ranks of one process that share a GPU, as tests on machines with few GPUs do. Their kernels run
 * at once, each on its part of the GPU, and wait for each other. To load a kernel or to make a
 * graph, the driver may wait for another rank's kernel, which waits for this rank's: so nothing is
 * planned while a kernel of any rank may run.
 */
final class PeerSharing {
  /** The developer switch that allows it. */
  static final String SWITCH = "dev.peer.sharing";

  private final int sharers;
  private final int turn;

  /**
   * Who shares what.
   *
   * @param gpus names each rank's GPU, by rank
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

  /** Why two ranks cannot share a GPU; empty if they can. */
  static String obstacle(boolean allowed, boolean sameProcess) {
    return allowed && sameProcess ? "" : "they share a GPU";
  }

  /** How many lower ranks have this rank's GPU: which part of it is this rank's. */
  int turn() {
    return turn;
  }

  /** How many of a GPU's SMs a rank has. */
  int part(int ofGpu) {
    return ofGpu / sharers;
  }

  /** A GPU's name for measurements, which are others where ranks share. */
  String nameOf(String gpu) {
    return isShared() ? gpu + " shared" : gpu;
  }

  /**
   * The operations that are planned before a buffer's first call; the others, if not all, when they
   * are asked for.
   */
  List<ReduceOp> plannedFirst(DataType type) {
    if (!isShared()) {
      return List.of(type.isFloatingPoint() ? ReduceOp.AVERAGE : ReduceOp.SUM);
    }
    return Arrays.stream(ReduceOp.values()).filter(op -> op.isDefinedFor(type)).toList();
  }

  /** Called when something has been planned in a call; waits until all ranks have. */
  void planned(GroupCommunicator communicator) {
    if (isShared()) {
      Agreement.requireAll(communicator, "");
    }
  }

  private boolean isShared() {
    return sharers > 1;
  }
}
