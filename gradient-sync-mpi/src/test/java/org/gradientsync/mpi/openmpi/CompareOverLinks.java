package org.gradientsync.mpi.openmpi;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.LongBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Locale;
import mpi.MPI;
import mpi.MPIException;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.SumOrder;

/**
 * Times averages between nodes against Open MPI's {@code allReduce}, by turns in one run, and
 * counts the bytes that cross the nodes' links. This is not a test, because times depend on the
 * machine. Run it with {@code script/measure/compare-nodes}.
 *
 * <p>Prints medians, and the least that any all-reduce in the order of sums needs: the buffer once
 * for each node on two nodes, twice on more in rank order, 2(M-1)/M times on M nodes in any order.
 */
final class CompareOverLinks {
  private static final int LARGE = 1 << 20;

  private CompareOverLinks() {}

  /**
   * Times some sizes.
   *
   * @param args the links' bandwidth in Mbit/s or 0, the number of nodes, the order of sums, and
   *     sizes in bytes
   */
  public static void main(String[] args) throws MPIException {
    double bytesPerMicrosecond = Double.parseDouble(args[0]) / 8;
    int nodes = Integer.parseInt(args[1]);
    SumOrder order = SumOrder.valueOf(args[2].toUpperCase(Locale.ROOT));
    try (GradientSync sync = GradientSync.builder().order(order).create()) {
      for (int i = 3; i < args.length; i++) {
        compare(sync, Integer.parseInt(args[i]), nodes, order, bytesPerMicrosecond);
      }
    }
  }

  private static double crossings(int nodes, SumOrder order) {
    return nodes == 2 ? 1 : order == SumOrder.RANKS ? 2 : 2.0 * (nodes - 1) / nodes;
  }

  private static void compare(
      GradientSync sync, int bytes, int nodes, SumOrder order, double bytesPerMicrosecond)
      throws MPIException {
    int count = bytes / Float.BYTES;
    int calls = bytes >= LARGE ? 1 : 50;
    int rounds = bytes >= LARGE ? 5 : 11;
    double[] own = new double[rounds];
    double[] theirs = new double[rounds];
    long crossed = 0;
    ByteBuffer memory = ByteBuffer.allocateDirect(bytes).order(ByteOrder.nativeOrder());
    try (DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, count)) {
      requireRight(sync, buffer);
      for (int round = bytes >= LARGE ? -1 : -5 * rounds; round < rounds; round++) {
        int slot = Math.max(0, round);
        long before = sent();
        MPI.COMM_WORLD.barrier();
        long start = System.nanoTime();
        for (int call = 0; call < calls; call++) {
          sync.average(buffer);
        }
        MPI.COMM_WORLD.barrier();
        own[slot] = (System.nanoTime() - start) / 1e3 / calls;
        crossed = Math.max(round < 0 ? 0 : crossed, sent() - before);
        start = System.nanoTime();
        for (int call = 0; call < calls; call++) {
          MPI.COMM_WORLD.allReduce(memory, count, MPI.FLOAT, MPI.SUM);
        }
        MPI.COMM_WORLD.barrier();
        theirs[slot] = (System.nanoTime() - start) / 1e3 / calls;
      }
    }
    long most = most(sync, crossed / calls);
    if (sync.rank() == 0) {
      double least = crossings(nodes, order) * bytes;
      System.out.printf(
          Locale.ROOT,
          "%s order=%s nodes=%d ranks=%d bytes=%d average=%.0f us, Open MPI allReduce=%.0f us,"
              + " ratio %.2f; a node sends at most %.3f of the least%s%n",
          sync.reducer(),
          order,
          nodes,
          sync.size(),
          bytes,
          median(own),
          median(theirs),
          median(own) / median(theirs),
          most / least,
          bytesPerMicrosecond == 0
              ? ""
              : String.format(
                  Locale.ROOT,
                  ", time %.3f of the least",
                  median(own) / (least / bytesPerMicrosecond)));
    }
  }

  private static void requireRight(GradientSync sync, DeviceBuffer buffer) {
    float[] values = new float[(int) buffer.count()];
    Arrays.fill(values, sync.rank() + 1);
    buffer.copyFrom(values);
    sync.average(buffer);
    buffer.copyTo(values);
    for (float value : values) {
      if (value != (sync.size() + 1) / 2f) {
        throw new AssertionError("a wrong average: " + value);
      }
    }
  }

  /** What this node has sent over its link so far, in bytes. */
  private static long sent() {
    try {
      return Long.parseLong(
          Files.readString(Path.of("/sys/class/net/eth0/statistics/tx_bytes")).strip());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static long most(GradientSync sync, long own) {
    long[] all = new long[sync.size()];
    sync.communicator().allGather(LongBuffer.wrap(new long[] {own}), LongBuffer.wrap(all));
    return Arrays.stream(all).max().orElseThrow();
  }

  private static double median(double[] times) {
    double[] sorted = times.clone();
    Arrays.sort(sorted);
    return sorted[sorted.length / 2];
  }
}
