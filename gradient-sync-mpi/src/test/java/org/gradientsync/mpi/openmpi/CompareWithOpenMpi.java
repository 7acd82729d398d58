package org.gradientsync.mpi.openmpi;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import mpi.MPI;
import mpi.MPIException;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.ReduceOp;

/**
 * Times this library's calls on host memory against Open MPI's own, called from Java on direct
 * buffers, alternately in one run. This is not a test, because times depend on the machine. Run it
 * with {@code script/measure/compare-mpi}.
 *
 * <p>Prints medians in microseconds. For {@code average}, the {@code allreduce} column is only the
 * sum; {@code +divide} includes the division for an average, as a loop over a {@code FloatBuffer}.
 * For {@code allGather} and {@code reduceScatter}, the size is that of the larger buffer, and both
 * sides sum without dividing.
 */
final class CompareWithOpenMpi {
  private static final String AVERAGE = "average";
  private static final String ALL_GATHER = "allGather";
  private static final String REDUCE_SCATTER = "reduceScatter";
  private static final int[] AVERAGE_BYTES = {1 << 10, 64 << 10, 1 << 20, 64 << 20};
  private static final int[] BYTES = {1 << 10, 64 << 10, 1 << 20, 16 << 20, 64 << 20};

  private CompareWithOpenMpi() {}

  /** One side's call. */
  private interface Timed {
    void run() throws MPIException;
  }

  /**
   * Times the calls and the sizes given, or all calls with their default sizes.
   *
   * @param args names of calls, and sizes in bytes; without a name {@code average}
   */
  public static void main(String[] args) throws MPIException {
    List<String> calls = new ArrayList<>();
    List<Integer> given = new ArrayList<>();
    for (String arg : args) {
      if (Character.isDigit(arg.charAt(0))) {
        given.add(Integer.parseInt(arg));
      } else {
        calls.add(arg);
      }
    }
    if (calls.isEmpty()) {
      calls.addAll(
          given.isEmpty() ? List.of(AVERAGE, ALL_GATHER, REDUCE_SCATTER) : List.of(AVERAGE));
    }
    int[] sizes = given.stream().mapToInt(Integer::intValue).toArray();
    try (GradientSync sync = GradientSync.create()) {
      for (String call : calls) {
        int[] defaults = call.equals(AVERAGE) ? AVERAGE_BYTES : BYTES;
        for (int bytes : sizes.length == 0 ? defaults : sizes) {
          switch (call) {
            case AVERAGE -> compareAverage(sync, bytes);
            case ALL_GATHER -> compareAllGather(sync, bytes);
            case REDUCE_SCATTER -> compareReduceScatter(sync, bytes);
            default -> throw new IllegalArgumentException("no such call: call=" + call);
          }
        }
      }
    }
  }

  private static int rounds(int bytes) {
    return bytes >= 1 << 24 ? 15 : bytes >= 1 << 18 ? 400 : 4000;
  }

  /** Short calls need more of them until the JIT compiler has done its work. */
  private static int warmUps(int bytes) {
    return bytes >= 1 << 24 ? 5 : bytes >= 1 << 18 ? rounds(bytes) : 5 * rounds(bytes);
  }

  private static void compareAverage(GradientSync sync, int bytes) throws MPIException {
    int count = bytes / Float.BYTES;
    int rounds = rounds(bytes);
    ByteBuffer memory = ByteBuffer.allocateDirect(bytes).order(ByteOrder.nativeOrder());
    FloatBuffer floats = memory.asFloatBuffer();
    float[] data = numbers(sync, count);
    double[] own = new double[rounds];
    double[] bare = new double[rounds];
    double[] divided = new double[rounds];
    try (DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, count)) {
      for (int round = -warmUps(bytes); round < rounds; round++) {
        buffer.copyFrom(data);
        floats.put(0, data);
        int slot = Math.max(0, round);
        sync.barrier();
        long t0 = System.nanoTime();
        sync.average(buffer);
        own[slot] = (System.nanoTime() - t0) / 1e3;
        sync.barrier();
        t0 = System.nanoTime();
        MPI.COMM_WORLD.allReduce(memory, count, MPI.FLOAT, MPI.SUM);
        long t1 = System.nanoTime();
        float divisor = sync.size();
        for (int i = 0; i < count; i++) {
          floats.put(i, floats.get(i) / divisor);
        }
        bare[slot] = (t1 - t0) / 1e3;
        divided[slot] = (System.nanoTime() - t0) / 1e3;
      }
    }
    if (sync.rank() == 0) {
      System.out.printf(
          Locale.ROOT,
          "ranks=%d bytes=%-9d average=%10.1f us  allreduce=%10.1f us  +divide=%10.1f us  ratio=%.2f"
              + "  ratio to +divide=%.2f%n",
          sync.size(),
          bytes,
          median(own),
          median(bare),
          median(divided),
          median(own) / median(bare),
          median(own) / median(divided));
    }
  }

  private static void compareAllGather(GradientSync sync, int bytes) throws MPIException {
    int block = bytes / Float.BYTES / sync.size();
    float[] data = numbers(sync, block);
    ByteBuffer theirIn = direct(data);
    ByteBuffer theirOut = direct(new float[block * sync.size()]);
    try (DeviceBuffer in = sync.allocate(DataType.FLOAT32, block);
        DeviceBuffer out = sync.allocate(DataType.FLOAT32, (long) block * sync.size())) {
      in.copyFrom(data);
      compare(
          sync,
          ALL_GATHER,
          bytes,
          () -> sync.allGather(in, out),
          () -> MPI.COMM_WORLD.allGather(theirIn, block, MPI.FLOAT, theirOut, block, MPI.FLOAT));
      requireSame(out, theirOut);
    }
  }

  private static void compareReduceScatter(GradientSync sync, int bytes) throws MPIException {
    int block = bytes / Float.BYTES / sync.size();
    float[] data = numbers(sync, block * sync.size());
    ByteBuffer theirIn = direct(data);
    ByteBuffer theirOut = direct(new float[block]);
    try (DeviceBuffer in = sync.allocate(DataType.FLOAT32, (long) block * sync.size());
        DeviceBuffer out = sync.allocate(DataType.FLOAT32, block)) {
      in.copyFrom(data);
      compare(
          sync,
          REDUCE_SCATTER,
          bytes,
          () -> sync.reduceScatter(in, out, ReduceOp.SUM),
          () -> MPI.COMM_WORLD.reduceScatterBlock(theirIn, theirOut, block, MPI.FLOAT, MPI.SUM));
      requireSame(out, theirOut);
    }
  }

  /** Times both sides by turns, which of them comes first included. */
  private static void compare(GradientSync sync, String call, int bytes, Timed own, Timed theirs)
      throws MPIException {
    int rounds = rounds(bytes);
    double[] ownTimes = new double[rounds];
    double[] theirTimes = new double[rounds];
    for (int round = -warmUps(bytes); round < rounds; round++) {
      int slot = Math.max(0, round);
      if ((round & 1) == 0) {
        ownTimes[slot] = microseconds(sync, own);
        theirTimes[slot] = microseconds(sync, theirs);
      } else {
        theirTimes[slot] = microseconds(sync, theirs);
        ownTimes[slot] = microseconds(sync, own);
      }
    }
    if (sync.rank() == 0) {
      System.out.printf(
          Locale.ROOT,
          "ranks=%d bytes=%-9d %-13s=%10.1f us  Open MPI=%10.1f us  ratio=%.2f%n",
          sync.size(),
          bytes,
          call,
          median(ownTimes),
          median(theirTimes),
          median(ownTimes) / median(theirTimes));
    }
  }

  private static double microseconds(GradientSync sync, Timed call) throws MPIException {
    sync.barrier();
    long start = System.nanoTime();
    call.run();
    return (System.nanoTime() - start) / 1e3;
  }

  private static float[] numbers(GradientSync sync, int count) {
    float[] data = new float[count];
    for (int i = 0; i < count; i++) {
      data[i] = sync.rank() + i % 1000;
    }
    return data;
  }

  private static ByteBuffer direct(float[] data) {
    ByteBuffer memory =
        ByteBuffer.allocateDirect(data.length * Float.BYTES).order(ByteOrder.nativeOrder());
    memory.asFloatBuffer().put(data);
    return memory;
  }

  private static void requireSame(DeviceBuffer own, ByteBuffer theirs) {
    ByteBuffer copy = ByteBuffer.allocateDirect(theirs.capacity()).order(ByteOrder.nativeOrder());
    own.copyTo(copy);
    if (copy.clear().mismatch(theirs) >= 0) {
      throw new IllegalStateException("the results differ");
    }
  }

  private static double median(double[] values) {
    double[] sorted = values.clone();
    Arrays.sort(sorted);
    return sorted[sorted.length / 2];
  }
}
