package org.gradientsync.mpi.binding;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.util.Arrays;
import java.util.Locale;
import mpi.MPI;
import mpi.MPIException;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;

/**
 * Times {@code sync.average} of host memory against Open MPI's own all-reduce, called from Java on
 * direct buffers, alternately in one run. This is not a test, because times depend on the machine.
 * Run it with {@code script/compare-mpi}.
 *
 * <p>Prints medians in microseconds. The {@code allreduce} column is only the sum; {@code +divide}
 * includes the division for an average, as a loop over a {@code FloatBuffer}.
 */
final class CompareWithOpenMpi {
  private static final int[] BYTES = {1 << 10, 64 << 10, 1 << 20, 64 << 20};

  private CompareWithOpenMpi() {}

  /** Times the sizes given in bytes, or the default ones. */
  public static void main(String[] args) throws MPIException {
    int[] sizes = Arrays.stream(args).mapToInt(Integer::parseInt).toArray();
    try (GradientSync sync = GradientSync.create()) {
      for (int bytes : sizes.length == 0 ? BYTES : sizes) {
        compare(sync, bytes);
      }
    }
  }

  private static void compare(GradientSync sync, int bytes) throws MPIException {
    int count = bytes / Float.BYTES;
    int rounds = bytes >= 1 << 24 ? 15 : bytes >= 1 << 18 ? 400 : 4000;
    int warm = bytes >= 1 << 24 ? 5 : rounds;
    ByteBuffer memory = ByteBuffer.allocateDirect(bytes).order(ByteOrder.nativeOrder());
    FloatBuffer floats = memory.asFloatBuffer();
    float[] data = new float[count];
    for (int i = 0; i < count; i++) {
      data[i] = sync.rank() + i % 1000;
    }
    double[] own = new double[rounds];
    double[] bare = new double[rounds];
    double[] divided = new double[rounds];
    try (DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, count)) {
      for (int round = -warm; round < rounds; round++) {
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

  private static double median(double[] values) {
    double[] sorted = values.clone();
    Arrays.sort(sorted);
    return sorted[sorted.length / 2];
  }
}
