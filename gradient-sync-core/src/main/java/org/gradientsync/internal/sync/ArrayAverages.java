package org.gradientsync.internal.sync;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.spi.Resources;
import org.gradientsync.spi.Unclosed;

/**
 * Averages the program's arrays through buffers on the device. A buffer is kept for arrays of the
 * same type and length, until {@value #MAX} others were used since.
 */
final class ArrayAverages implements AutoCloseable {
  private static final int MAX = 16;

  private final GradientSync sync;
  private final Map<Shape, DeviceBuffer> buffers =
      new LinkedHashMap<>(MAX, 0.75f, true); // the last used one last

  private record Shape(DataType type, int length) {}

  ArrayAverages(GradientSync sync) {
    this.sync = sync;
  }

  synchronized void average(float[] array) {
    DeviceBuffer buffer = buffer(DataType.FLOAT32, array.length);
    buffer.copyFrom(array);
    sync.average(buffer);
    buffer.copyTo(array);
  }

  synchronized void average(double[] array) {
    DeviceBuffer buffer = buffer(DataType.FLOAT64, array.length);
    buffer.copyFrom(array);
    sync.average(buffer);
    buffer.copyTo(array);
  }

  private DeviceBuffer buffer(DataType type, int length) {
    Shape shape = new Shape(type, length);
    DeviceBuffer buffer = buffers.get(shape);
    if (buffer == null) {
      if (buffers.size() == MAX) {
        buffers.remove(buffers.keySet().iterator().next()).close();
      }
      buffer = Unclosed.exempt(sync.allocate(type, length));
      buffers.put(shape, buffer);
    }
    return buffer;
  }

  @Override
  public synchronized void close() {
    List<DeviceBuffer> all = new ArrayList<>(buffers.values());
    buffers.clear();
    Resources.closeAll(all);
  }
}
