package org.gradientsync.examples;

import java.util.Arrays;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.tools.program.RankedProgram;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/**
 * Spreads heat around a ring. Every rank has a piece of the ring in its device's memory, with a
 * ghost cell at each end that holds its neighbor's outermost cell.
 */
@Command(
    name = "halo-exchange",
    description = "Computes how heat spreads around a ring that is divided over the ranks.")
public class HaloExchange extends RankedProgram {
  /** Limits the ring, because rank 0 gathers it into one array. */
  private static final int MOST_CELLS = 1_000_000;

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
  public void checkOptions() {
    requireAtLeast(1, "--cells", cells);
    requireAtMost(MOST_CELLS, "--cells", cells);
    requireAtLeast(0, "--steps", steps);
  }

  @Override
  public int run(GradientSync sync) {
    int total = cells * sync.size();
    print(sync, "Ranks: %d, launcher %s", sync.size(), sync.launcher());
    print(sync, "Cells: %d, steps: %d", total, steps);
    print(sync, "Reducer: %s, device: %s", sync.reducer(), sync.device().name());
    boolean root = sync.rank() == 0;
    double[] ring = spread(sync, total);
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

  /** Makes all steps, and returns the ring on rank 0, null elsewhere. */
  private double[] spread(GradientSync sync, int total) {
    try (HeatStep heat = HeatStep.on(sync.device());
        HeatPiece one = new HeatPiece(sync, cells);
        HeatPiece other = new HeatPiece(sync, cells)) {
      double[] start = new double[cells];
      Arrays.setAll(start, i -> initialHeat(sync.rank() * cells + i, total));
      one.cells().copyFrom(start);
      HeatPiece now = one;
      HeatPiece next = other;
      for (int step = 0; step < steps; step++) {
        stage(sync, "spreading heat, step " + step + " of " + steps);
        exchangeGhosts(sync, now);
        heat.compute(now, next);
        HeatPiece before = now;
        now = next;
        next = before;
      }
      return gather(sync, now.cells(), total);
    }
  }

  private static double[] gather(GradientSync sync, DeviceBuffer cells, int total) {
    if (sync.rank() != 0) {
      sync.gather(cells, null, 0);
      return null;
    }
    try (DeviceBuffer ring = sync.allocate(DataType.FLOAT64, total)) {
      sync.gather(cells, ring, 0);
      double[] values = new double[total];
      ring.copyTo(values);
      return values;
    }
  }

  /**
   * Exchanges the ghost cells. This is the communication, separate from the computation. All ranks
   * send to the right, then to the left. A single rank is its own neighbor.
   */
  void exchangeGhosts(GradientSync sync, HeatPiece piece) {
    int left = (sync.rank() + sync.size() - 1) % sync.size();
    int right = (sync.rank() + 1) % sync.size();
    shift(sync, piece.last(), right, piece.leftGhost(), left);
    shift(sync, piece.first(), left, piece.rightGhost(), right);
  }

  /**
   * Sends a cell to one neighbor and receives one from the other. A send may wait for its receive,
   * so if all ranks of the ring sent first, all would wait. Even ranks send first and odd ranks
   * receive first. With an odd number of ranks two neighbors are even, and one of them waits until
   * the other has sent.
   */
  private static void shift(
      GradientSync sync, DeviceBuffer sent, int to, DeviceBuffer received, int from) {
    if (to == sync.rank()) {
      double[] cell = new double[1];
      sent.copyTo(cell);
      received.copyFrom(cell);
    } else if (sync.rank() % 2 == 0) {
      sync.send(sent, to);
      sync.receive(received, from);
    } else {
      sync.receive(received, from);
      sync.send(sent, to);
    }
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
        double left = before[(i + total - 1) % total];
        after[i] = HeatStep.spread(left, before[i], before[(i + 1) % total]);
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
