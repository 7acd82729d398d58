package org.gradientsync.core.sync;

import java.util.Arrays;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.spi.AbstractDeviceBuffer;
import org.gradientsync.spi.Resources;
import org.gradientsync.spi.Unclosed;

/**
 * Buffers of one type for what differs in length. A buffer is kept for each size in use. Sizes are
 * powers of two and 1.25, 1.5 and 1.75 times these, so a size is at most a quarter more than the
 * length, and all buffers together have at most 6.5 times the elements of the longest. Not
 * thread-safe.
 */
final class KeptBuffers implements AutoCloseable {
  private static final int SIZES = 4 * Integer.SIZE;

  private final GradientSync sync;
  private final DataType type;
  private final DeviceBuffer[] buffers = new DeviceBuffer[SIZES];

  KeptBuffers(GradientSync sync, DataType type) {
    this.sync = sync;
    this.type = type;
  }

  /** A buffer that uses {@code length} elements; its others are zero. For a collective. */
  DeviceBuffer padded(int length) {
    DeviceBuffer buffer = atLeast(length);
    ((AbstractDeviceBuffer) buffer).use(length);
    return buffer;
  }

  /** A view with {@code length} elements, for other work. */
  DeviceBuffer part(int length) {
    return atLeast(length).slice(0, length);
  }

  /** Whether a buffer of this type is a view of one of these. */
  boolean overlap(DeviceBuffer buffer) {
    for (DeviceBuffer kept : buffers) {
      if (kept != null && ((AbstractDeviceBuffer) kept).overlaps((AbstractDeviceBuffer) buffer)) {
        return true;
      }
    }
    return false;
  }

  private DeviceBuffer atLeast(int length) {
    int below = Integer.highestOneBit(Math.max(0, length - 1)); // a power of two below the length
    int step = Math.max(1, below / 4);
    int steps = (int) ((length + step - 1L) / step);
    int size = below < 4 ? length : 4 * Integer.numberOfTrailingZeros(below) + steps - 4;
    if (buffers[size] == null) {
      buffers[size] = Unclosed.exempt(sync.allocate(type, (long) steps * step));
    }
    return buffers[size];
  }

  @Override
  public void close() {
    Resources.closeAll(Arrays.asList(buffers));
    Arrays.fill(buffers, null);
  }
}
