package org.gradientsync.mpi.openmpi;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.ServerSocket;
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
import org.gradientsync.ReduceOp;
import org.gradientsync.SumOrder;

/**
 * Times a collective between nodes, over MPI and over TCP, against Open MPI's own, by turns in one
 * run, and counts the bytes that cross the nodes' links. This is not a test, because times depend
 * on the machine. Run it with {@code script/measure/compare-nodes}.
 *
 * <p>Prints medians, and the least that any all-reduce in the order of sums needs: the buffer once
 * for each node on two nodes, twice on more in rank order, 2(M-1)/M times on M nodes in any order.
 * An all-gather, and a reduce-scatter in any order, need (M-1)/M of the larger buffer, a broadcast
 * the buffer once, an all-to-all (M-1)/M of each rank's.
 */
final class CompareOverLinks {
  private static final int LARGE = 1 << 20;
  private static final int RANKS_OF_NODE = 2;
  private static final String MASTER = "10.77.0.1"; // the first node of links.sh

  /** What is timed. */
  private enum Call {
    AVERAGE {
      @Override
      void own(GradientSync sync, DeviceBuffer buffer, DeviceBuffer block) {
        sync.average(buffer);
      }

      @Override
      void theirs(ByteBuffer memory, ByteBuffer block, int count) throws MPIException {
        MPI.COMM_WORLD.allReduce(memory, count, MPI.FLOAT, MPI.SUM);
      }
    },
    ALL_GATHER {
      @Override
      void own(GradientSync sync, DeviceBuffer buffer, DeviceBuffer block) {
        sync.allGather(block, buffer);
      }

      @Override
      void theirs(ByteBuffer memory, ByteBuffer block, int count) throws MPIException {
        int each = block.capacity() / Float.BYTES;
        MPI.COMM_WORLD.allGather(block, each, MPI.FLOAT, memory, each, MPI.FLOAT);
      }
    },
    REDUCE_SCATTER {
      @Override
      void own(GradientSync sync, DeviceBuffer buffer, DeviceBuffer block) {
        sync.reduceScatter(buffer, block, ReduceOp.SUM);
      }

      @Override
      void theirs(ByteBuffer memory, ByteBuffer block, int count) throws MPIException {
        int each = block.capacity() / Float.BYTES;
        MPI.COMM_WORLD.reduceScatterBlock(memory, block, each, MPI.FLOAT, MPI.SUM);
      }
    },
    BROADCAST {
      @Override
      void own(GradientSync sync, DeviceBuffer buffer, DeviceBuffer block) {
        sync.broadcast(buffer, 0);
      }

      @Override
      void theirs(ByteBuffer memory, ByteBuffer block, int count) throws MPIException {
        MPI.COMM_WORLD.bcast(memory, count, MPI.FLOAT, 0);
      }
    },
    ALL_TO_ALL {
      @Override
      void own(GradientSync sync, DeviceBuffer buffer, DeviceBuffer block) {
        sync.allToAll(buffer, block);
      }

      @Override
      void theirs(ByteBuffer memory, ByteBuffer block, int count) throws MPIException {
        int each = count / MPI.COMM_WORLD.getSize();
        MPI.COMM_WORLD.allToAll(memory, each, MPI.FLOAT, block, each, MPI.FLOAT);
      }
    };

    /** Calls the library, with a buffer and a rank's block of one; all of it in an all-to-all. */
    abstract void own(GradientSync sync, DeviceBuffer buffer, DeviceBuffer block);

    /** Calls Open MPI. */
    abstract void theirs(ByteBuffer memory, ByteBuffer block, int count) throws MPIException;
  }

  private CompareOverLinks() {}

  /**
   * Times some sizes.
   *
   * @param args the links' bandwidth in Mbit/s or 0, the number of nodes, the order of sums, the
   *     call, and sizes in bytes of the larger buffer
   */
  public static void main(String[] args) throws MPIException {
    double bytesPerMicrosecond = Double.parseDouble(args[0]) / 8;
    int nodes = Integer.parseInt(args[1]);
    SumOrder order = SumOrder.valueOf(args[2].toUpperCase(Locale.ROOT));
    try (GradientSync overMpi = GradientSync.builder().order(order).create();
        GradientSync overTcp = overTcp(overMpi, order)) {
      Call call = Call.valueOf(args[3].toUpperCase(Locale.ROOT).replace('-', '_'));
      for (int i = 4; i < args.length; i++) {
        int bytes = Integer.parseInt(args[i]);
        compare(overMpi, overTcp, call, bytes, nodes, order, bytesPerMicrosecond);
      }
    }
  }

  /** The same ranks over TCP: rank 0 is on the first node. */
  private static GradientSync overTcp(GradientSync sync, SumOrder order) {
    long[] port = new long[1];
    if (sync.rank() == 0) {
      try (ServerSocket free = new ServerSocket(0)) {
        port[0] = free.getLocalPort();
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }
    sync.communicator().broadcast(LongBuffer.wrap(port), 0);
    return GradientSync.builder()
        .order(order)
        .set("tcp.rank", Integer.toString(sync.rank()))
        .set("tcp.size", Integer.toString(sync.size()))
        .set("tcp.master", MASTER + ":" + port[0])
        .set("tcp.secret", "of this comparison")
        .create();
  }

  private static double crossings(Call call, int nodes, SumOrder order) {
    if (call == Call.BROADCAST) {
      return 1;
    }
    if (call != Call.AVERAGE) {
      return (call == Call.ALL_TO_ALL ? RANKS_OF_NODE : 1) * (nodes - 1.0) / nodes;
    }
    return nodes == 2 ? 1 : order == SumOrder.RANKS ? 2 : 2.0 * (nodes - 1) / nodes;
  }

  /** One side's call. */
  private interface Timed {
    void run() throws MPIException;
  }

  private static void compare(
      GradientSync overMpi,
      GradientSync overTcp,
      Call timed,
      int bytes,
      int nodes,
      SumOrder order,
      double bytesPerMicrosecond)
      throws MPIException {
    int count = bytes / Float.BYTES / overMpi.size() * overMpi.size();
    int each = timed == Call.ALL_TO_ALL ? count : count / overMpi.size();
    int calls = bytes >= LARGE ? 1 : 50;
    int rounds = bytes >= LARGE ? 5 : 11;
    double[][] times = new double[3][rounds];
    long[] crossed = new long[2];
    ByteBuffer memory = ByteBuffer.allocateDirect(bytes).order(ByteOrder.nativeOrder());
    ByteBuffer part = ByteBuffer.allocateDirect(4 * each).order(ByteOrder.nativeOrder());
    try (DeviceBuffer mpi = overMpi.allocate(DataType.FLOAT32, count);
        DeviceBuffer mpiBlock = overMpi.allocate(DataType.FLOAT32, each);
        DeviceBuffer tcp = overTcp.allocate(DataType.FLOAT32, count);
        DeviceBuffer tcpBlock = overTcp.allocate(DataType.FLOAT32, each)) {
      requireRight(overMpi, mpi);
      requireRight(overTcp, tcp);
      for (int round = bytes >= LARGE ? -1 : -5 * rounds; round < rounds; round++) {
        int slot = Math.max(0, round);
        long before = sent();
        times[0][slot] = microseconds(calls, () -> timed.own(overMpi, mpi, mpiBlock));
        long between = sent();
        times[1][slot] = microseconds(calls, () -> timed.own(overTcp, tcp, tcpBlock));
        if (round >= 0) {
          crossed[0] = Math.max(crossed[0], between - before);
          crossed[1] = Math.max(crossed[1], sent() - between);
        }
        times[2][slot] = microseconds(calls, () -> timed.theirs(memory, part, count));
      }
    }
    double least = crossings(timed, nodes, order) * count * Float.BYTES;
    double leastTime = bytesPerMicrosecond == 0 ? Double.NaN : least / bytesPerMicrosecond;
    double theirs = median(times[2]);
    for (int side = 0; side < crossed.length; side++) {
      double own = median(times[side]);
      double most = most(overMpi, crossed[side] / calls) / least;
      if (overMpi.rank() == 0) {
        System.out.printf(
            Locale.ROOT,
            "%s over %s %s order=%s nodes=%d ranks=%d bytes=%d time=%.0f us, Open MPI=%.0f us,"
                + " ratio %.2f; a node sends at most %.3f of the least, time %.3f of it%n",
            (side == 0 ? overMpi : overTcp).reducer(),
            side == 0 ? "MPI" : "TCP",
            timed,
            order,
            nodes,
            overMpi.size(),
            bytes,
            own,
            theirs,
            own / theirs,
            most,
            own / leastTime);
      }
    }
  }

  /** The time of a call, of several that follow each other. */
  private static double microseconds(int calls, Timed call) throws MPIException {
    MPI.COMM_WORLD.barrier();
    long start = System.nanoTime();
    for (int i = 0; i < calls; i++) {
      call.run();
    }
    MPI.COMM_WORLD.barrier();
    return (System.nanoTime() - start) / 1e3 / calls;
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
