package org.gradientsync.cuda.internal.staged;

import java.util.Arrays;
import java.util.Locale;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.cuda.CudaBuffer;
import org.gradientsync.cuda.CudaStream;

/**
 * Times {@code sync.average} of float32 GPU memory until the result is in place. Prints medians in
 * microseconds.
 */
final class TimeHostStaged {
  private TimeHostStaged() {}

  public static void main(String[] args) {
    long most = Long.parseLong(args[0]);
    try (GradientSync sync = GradientSync.builder().device("cuda").reducer(args[1]).create()) {
      for (long bytes = 1024; bytes <= most; bytes *= 4) {
        int count = (int) (bytes / 4);
        int rounds = bytes <= 1 << 20 ? 200 : bytes <= 64 << 20 ? 20 : 9;
        double[] times = new double[rounds];
        boolean right;
        try (DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, count)) {
          float[] data = new float[count];
          Arrays.fill(data, sync.rank());
          buffer.copyFrom(data);
          sync.average(buffer);
          buffer.copyTo(data);
          right = data[count - 1] == (sync.size() - 1) / 2f && data[0] == data[count - 1];
          CudaStream stream = ((CudaBuffer) buffer).stream();
          for (int round = -rounds; round < rounds; round++) {
            sync.barrier();
            long start = System.nanoTime();
            sync.average(buffer);
            stream.await();
            times[Math.max(0, round)] = (System.nanoTime() - start) / 1e3;
          }
        }
        Arrays.sort(times);
        if (sync.rank() == 0) {
          double us = times[rounds / 2];
          System.out.printf(
              Locale.ROOT,
              "%s ranks=%d bytes=%-11d us=%11.1f algbw=%7.2f right=%b%n",
              sync.reducer(),
              sync.size(),
              bytes,
              us,
              bytes / us / 1e3,
              right);
        }
      }
    }
  }
}
