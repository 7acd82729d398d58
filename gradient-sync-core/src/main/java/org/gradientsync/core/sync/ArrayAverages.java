package org.gradientsync.core.sync;

import java.nio.FloatBuffer;
import java.util.List;
import java.util.function.BiConsumer;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.spi.AbstractDeviceBuffer;
import org.gradientsync.spi.Resources;

/** Averages the program's arrays through buffers on the device. */
final class ArrayAverages implements AutoCloseable {
  private static final int MAX_PACKED = 16_000_000; // elements

  private final GradientSync sync;
  private final KeptBuffers floats;
  private final KeptBuffers doubles;
  private FloatBuffer packed; // or null

  ArrayAverages(GradientSync sync) {
    this.sync = sync;
    floats = new KeptBuffers(sync, DataType.FLOAT32);
    doubles = new KeptBuffers(sync, DataType.FLOAT64);
  }

  synchronized void average(float[] array) {
    DeviceBuffer buffer = floats.padded(array.length);
    buffer.copyFrom(array);
    sync.average(buffer);
    buffer.copyTo(array);
  }

  /**
   * Averages several arrays, as many at a time as are packed into one buffer. The ranks compare all
   * lengths in each call, and in one call if there are no arrays.
   */
  synchronized void average(List<float[]> arrays) {
    long hash = 0; // of 64 bits that depend on all lengths
    for (float[] array : arrays) {
      hash = (hash + array.length + 1) * 0x9e3779b97f4a7c15L;
      hash ^= hash >>> 32;
    }
    String name = arrays.size() + " arrays #" + Long.toHexString(hash);
    int first = 0;
    do {
      int end = first;
      long count = 0;
      while (end < arrays.size()
          && (end == first || count + arrays.get(end).length <= MAX_PACKED)) {
        count += arrays.get(end++).length;
      }
      averagePacked(arrays.subList(first, end), first, (int) count, name);
      first = end;
    } while (first < arrays.size());
  }

  private void averagePacked(List<float[]> arrays, int number, int count, String name) {
    AbstractDeviceBuffer buffer = (AbstractDeviceBuffer) floats.padded(count);
    buffer.named(name);
    buffer.elementsNamed(element -> nameOf(arrays, number, element));
    try {
      if (arrays.size() == 1 || sync.device().kind().equals("host")) {
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
      buffer.elementsNamed(element -> "");
    }
  }

  /**
   * Names an element of packed arrays for errors.
   *
   * @param number that of the first array
   */
  private static String nameOf(List<float[]> arrays, int number, long element) {
    long index = element;
    for (int i = 0; i < arrays.size(); i++) {
      if (index < arrays.get(i).length) {
        return "array " + (number + i) + "[" + index + "]";
      }
      index -= arrays.get(i).length;
    }
    return "";
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
    DeviceBuffer buffer = doubles.padded(array.length);
    buffer.copyFrom(array);
    sync.average(buffer);
    buffer.copyTo(array);
  }

  @Override
  public synchronized void close() {
    packed = null;
    Resources.closeAll(floats, doubles);
  }
}
