package org.gradientsync.core.sync;

import java.nio.FloatBuffer;
import java.util.Arrays;
import java.util.List;
import java.util.function.BiConsumer;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.spi.AbstractDeviceBuffer;
import org.gradientsync.spi.Resources;
import org.gradientsync.spi.Unclosed;

/**
 * Averages the program's arrays through buffers on the device. A buffer is kept for each size in
 * use: a number of elements of which only the first three bits may be set, so that it is at most a
 * quarter more than the length of an array, and all buffers of a type together have at most 6.5
 * times the elements of the longest array.
 */
final class ArrayAverages implements AutoCloseable {
  private static final int SIZES = 4 * Integer.SIZE;
  private static final int MAX_PACKED = 16_000_000; // elements

  private final GradientSync sync;
  private final DeviceBuffer[] floats = new DeviceBuffer[SIZES];
  private final DeviceBuffer[] doubles = new DeviceBuffer[SIZES];
  private FloatBuffer packed; // or null

  ArrayAverages(GradientSync sync) {
    this.sync = sync;
  }

  synchronized void average(float[] array) {
    DeviceBuffer buffer = buffer(floats, DataType.FLOAT32, array.length);
    buffer.copyFrom(array);
    sync.average(buffer);
    buffer.copyTo(array);
  }

  /** Averages several arrays, as many at a time as are packed into one buffer. */
  synchronized void average(List<float[]> arrays) {
    for (int first = 0; first < arrays.size(); ) {
      int end = first;
      long count = 0;
      do {
        count += arrays.get(end++).length;
      } while (end < arrays.size() && count + arrays.get(end).length <= MAX_PACKED);
      if (end == first + 1) {
        average(arrays.get(first));
      } else {
        averagePacked(arrays.subList(first, end), (int) count);
      }
      first = end;
    }
  }

  private void averagePacked(List<float[]> arrays, int count) {
    DeviceBuffer buffer = buffer(floats, DataType.FLOAT32, count);
    int[] lengths = arrays.stream().mapToInt(array -> array.length).toArray();
    buffer.named(lengths.length + " arrays #" + Integer.toHexString(Arrays.hashCode(lengths)));
    try {
      if (sync.device().kind().equals("host")) {
        copy(buffer, arrays, DeviceBuffer::copyFrom);
        sync.average(buffer);
        copy(buffer, arrays, DeviceBuffer::copyTo);
      } else { // one copy to the device, and one back
        FloatBuffer elements = packed(count);
        arrays.forEach(elements::put);
        buffer.copyFrom(elements.flip());
        sync.average(buffer);
        buffer.copyTo(elements);
        elements.rewind();
        arrays.forEach(elements::get);
      }
    } finally {
      buffer.named(""); // as a single array of this length
    }
  }

  private static void copy(
      DeviceBuffer buffer, List<float[]> arrays, BiConsumer<DeviceBuffer, float[]> copy) {
    long first = 0;
    for (float[] array : arrays) {
      copy.accept(buffer.slice(first, array.length), array);
      first += array.length;
    }
  }

  private FloatBuffer packed(int count) {
    if (packed == null || packed.capacity() < count) {
      packed = FloatBuffer.allocate(count);
    }
    return packed.clear().limit(count);
  }

  synchronized void average(double[] array) {
    DeviceBuffer buffer = buffer(doubles, DataType.FLOAT64, array.length);
    buffer.copyFrom(array);
    sync.average(buffer);
    buffer.copyTo(array);
  }

  private DeviceBuffer buffer(DeviceBuffer[] buffers, DataType type, int length) {
    int below = Integer.highestOneBit(Math.max(0, length - 1)); // a power of two below the length
    int step = Math.max(1, below / 4);
    int steps = (int) ((length + step - 1L) / step);
    int size = below < 4 ? length : 4 * Integer.numberOfTrailingZeros(below) + steps - 4;
    if (buffers[size] == null) {
      buffers[size] = Unclosed.exempt(sync.allocate(type, (long) steps * step));
    }
    ((AbstractDeviceBuffer) buffers[size]).use(length);
    return buffers[size];
  }

  @Override
  public synchronized void close() {
    Resources.closeAll(
        () -> Resources.closeAll(Arrays.asList(floats)),
        () -> Resources.closeAll(Arrays.asList(doubles)));
    Arrays.fill(floats, null);
    Arrays.fill(doubles, null);
  }
}
