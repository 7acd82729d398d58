package org.gradientsync.core.host;

import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.util.Arrays;

/** Adds up rows, as many of the target's at a time as fit into a small array. */
final class HostRows {
  private static final int ELEMENTS = 1 << 14;

  private HostRows() {}

  /** As {@link org.gradientsync.spi.BackendDevice#sumRows}. */
  static void sum(HostBuffer source, HostBuffer table, int width, HostBuffer target) {
    long sources = source.count() / width;
    long rows = target.count() / width;
    int most = (int) Math.min(rows, Math.max(1, ELEMENTS / width));
    int[] starts = new int[most + 1];
    float[] sums = new float[most * width];
    float[] row = new float[width];
    FloatBuffer read = FloatBuffer.wrap(row);
    FloatBuffer written = FloatBuffer.wrap(sums);
    int[] numbers = new int[most]; // grows if rows are the sums of many
    for (long first = 0; first < rows; first += most) {
      int some = (int) Math.min(most, rows - first);
      table.read(sources + first, IntBuffer.wrap(starts), 0, some + 1);
      int begin = starts[0];
      int count = starts[some] - begin;
      numbers = count > numbers.length ? new int[count] : numbers;
      table.read(begin, IntBuffer.wrap(numbers), 0, count);
      Arrays.fill(sums, 0);
      for (int r = 0; r < some; r++) {
        for (int i = starts[r]; i < starts[r + 1]; i++) {
          source.read((long) numbers[i - begin] * width, read, 0, width);
          for (int k = 0; k < width; k++) {
            sums[r * width + k] += row[k];
          }
        }
      }
      target.write(first * width, written, 0, some * width);
    }
  }
}
