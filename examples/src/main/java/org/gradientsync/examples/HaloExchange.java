package org.gradientsync.examples;

import java.nio.DoubleBuffer;
import java.util.Arrays;
import org.gradientsync.Communicator;
import org.gradientsync.GradientSync;
import org.gradientsync.cuda.CudaDevice;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/**
 * Spreads heat around a ring. Every rank has a piece of the ring, with a ghost cell at each end
 * that holds its neighbor's outermost cell.
 */
@Command(
    name = "halo-exchange",
    description = "Computes how heat spreads around a ring that is divided over the ranks.")
public class HaloExchange extends Example {
  private static final double DIFFUSIVITY = 0.25;

  /** Limits the ring, because rank 0 gathers it into one array. */
  private static final int MOST_CELLS = 1_000_000;

  private static final int TO_THE_RIGHT = 1;
  private static final int TO_THE_LEFT = 2;

  @Option(
      names = "--cells",
      paramLabel = "N",
      defaultValue = "1000",
      description = "Cells of each rank (default: ${DEFAULT-VALUE}).")
  private int cells;

  @Option(
      names = "--steps",
      paramLabel = "N",
      defaultValue = "500",
      description = "Steps in time (default: ${DEFAULT-VALUE}).")
  private int steps;

  /**
   * Runs the program.
   *
   * @param args the command line
   */
  public static void main(String[] args) {
    start(new HaloExchange(), args);
  }

  @Override
  void checkOptions() {
    requireAtLeast(1, "--cells", cells);
    requireAtMost(MOST_CELLS, "--cells", cells);
    requireAtLeast(0, "--steps", steps);
  }

  @Override
  int run(GradientSync sync) {
    int total = cells * sync.size();
    print(sync, "Ranks: %d, launcher %s", sync.size(), sync.launcher());
    print(sync, "Cells: %d, steps: %d", total, steps);
    if (sync.device() instanceof CudaDevice) {
      print(sync, "The GPUs (%s) are idle: the cells are in host memory.", sync.device().name());
    }

    double[] now = new double[cells + 2]; // the first and the last one are ghost cells
    double[] next = new double[cells + 2];
    for (int i = 0; i < cells; i++) {
      now[i + 1] = initialHeat(sync.rank() * cells + i, total);
    }
    for (int step = 0; step < steps; step++) {
      stage(sync, "spreading heat, step " + step + " of " + steps);
      exchangeGhosts(sync.communicator(), now);
      diffuse(now, next);
      double[] before = now;
      now = next;
      next = before;
    }

    boolean root = sync.rank() == 0;
    double[] ring = root ? new double[total] : null;
    sync.communicator()
        .gather(DoubleBuffer.wrap(now, 1, cells), root ? DoubleBuffer.wrap(ring) : null, 0);
    stage(sync, "computing the same on one rank");
    boolean right = everywhere(sync, !root || isLikeSerial(ring));
    if (root) {
      print(sync, "Hottest cell: %.6f", Arrays.stream(ring).max().orElseThrow());
      print(sync, "Coldest cell: %.6f", Arrays.stream(ring).min().orElseThrow());
    }
    print(
        sync,
        right
            ? "[PASS] All cells are bit-equal to the serial computation."
            : "[FAIL] The cells differ from the serial computation.");
    return right ? RIGHT : WRONG;
  }

  /**
   * Exchanges the ghost cells. This is the communication, separate from the computation. All ranks
   * send to the right, then to the left. A single rank is its own neighbor.
   */
  void exchangeGhosts(Communicator communicator, double[] piece) {
    int left = (communicator.rank() + communicator.size() - 1) % communicator.size();
    int right = (communicator.rank() + 1) % communicator.size();
    communicator.sendReceive(
        DoubleBuffer.wrap(piece, cells, 1),
        right,
        DoubleBuffer.wrap(piece, 0, 1),
        left,
        TO_THE_RIGHT);
    communicator.sendReceive(
        DoubleBuffer.wrap(piece, 1, 1),
        left,
        DoubleBuffer.wrap(piece, cells + 1, 1),
        right,
        TO_THE_LEFT);
  }

  /**
   * Computes one step of a piece with its ghost cells. This is the computation, separate from the
   * communication.
   */
  void diffuse(double[] now, double[] next) {
    for (int i = 1; i <= cells; i++) {
      next[i] = spread(now[i - 1], now[i], now[i + 1]);
    }
  }

  private static double spread(double left, double own, double right) {
    return own + DIFFUSIVITY * (left - 2 * own + right);
  }

  /** Returns an asymmetric peak, so that mixing up left and right shows. */
  private static double initialHeat(int cell, int total) {
    double position = (double) cell / total;
    return 100 * position * position * (1 - position);
  }

  /** Computes the whole ring without ghost cells, and compares the bits. */
  private boolean isLikeSerial(double[] ring) {
    int total = ring.length;
    double[] now = new double[total];
    Arrays.setAll(now, cell -> initialHeat(cell, total));
    for (int step = 0; step < steps; step++) {
      double[] before = now;
      double[] after = new double[total];
      for (int i = 0; i < total; i++) {
        after[i] = spread(before[(i + total - 1) % total], before[i], before[(i + 1) % total]);
      }
      now = after;
    }
    for (int i = 0; i < total; i++) {
      if (Double.doubleToRawLongBits(now[i]) != Double.doubleToRawLongBits(ring[i])) {
        printError("wrong cell: cell=%d, is=%s, expected=%s", i, ring[i], now[i]);
        return false;
      }
    }
    return true;
  }
}
