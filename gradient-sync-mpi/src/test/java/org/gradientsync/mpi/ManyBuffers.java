package org.gradientsync.mpi;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Random;
import java.util.stream.Stream;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;

/**
 * The program that {@link ManyBuffersIT} runs: it allocates more small buffers than Linux allows
 * mappings.
 */
final class ManyBuffers {
  private static final int COUNT = 70_000;
  private static final int SAMPLE = 1_500; // more than the number of cached plans

  private ManyBuffers() {}

  public static void main(String[] args) throws IOException {
    try (GradientSync sync = GradientSync.builder().reducer("shared").create()) {
      DeviceBuffer[] buffers = new DeviceBuffer[COUNT];
      for (int i = 0; i < COUNT; i++) {
        // Each rank allocates in another order, so that the buffers have different places.
        int which = sync.rank() == 0 ? i : COUNT - 1 - i;
        DataType type = which % 2 == 0 ? DataType.FLOAT32 : DataType.FLOAT64;
        buffers[which] = sync.allocate(type, 1 + which % 5);
      }
      Random random = new Random(3);
      for (int i = 0; i < SAMPLE; i++) {
        average(sync, buffers, i < SAMPLE / 2 ? i : random.nextInt(COUNT));
      }
      // one string, so that the ranks' lines do not mix
      System.out.println("files=" + few(files()) + " mappings=" + few(mappings()) + ".");
    }
  }

  private static void average(GradientSync sync, DeviceBuffer[] buffers, int which) {
    DeviceBuffer buffer = buffers[which];
    int count = (int) buffer.count();
    double[] values = new double[count];
    float[] floats = new float[count];
    for (int i = 0; i < count; i++) {
      floats[i] = which + i + 2 * sync.rank();
      values[i] = floats[i];
    }
    if (buffer.type() == DataType.FLOAT32) {
      buffer.copyFrom(floats);
      sync.average(buffer);
      buffer.copyTo(floats);
    } else {
      buffer.copyFrom(values);
      sync.average(buffer);
      buffer.copyTo(values);
    }
    for (int i = 0; i < count; i++) {
      double average = buffer.type() == DataType.FLOAT32 ? floats[i] : values[i];
      if (average != which + i + 1) {
        throw new AssertionError("buffer " + which + ", element " + i + " is " + average);
      }
    }
  }

  private static String few(long number) {
    return number < 1_000 ? "few" : Long.toString(number);
  }

  private static long files() throws IOException {
    String own = "-" + ProcessHandle.current().pid() + "-";
    try (Stream<Path> all = Files.list(Path.of("/dev/shm"))) {
      return all.filter(file -> file.toString().contains(own)).count();
    }
  }

  /** Counts the mappings of this library's files, of both processes. */
  private static long mappings() throws IOException {
    try (Stream<String> lines = Files.lines(Path.of("/proc/self/maps"))) {
      return lines.filter(line -> line.contains("gradient-sync-")).count();
    }
  }
}
