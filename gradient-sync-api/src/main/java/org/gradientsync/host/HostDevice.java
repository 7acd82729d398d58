package org.gradientsync.host;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.EnumMap;
import java.util.Map;
import java.util.Objects;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSyncException;
import org.gradientsync.ReduceOp;
import org.gradientsync.spi.AbstractDeviceBuffer;
import org.gradientsync.spi.BackendDevice;

/**
 * The host's memory as a device: buffers outside the Java heap, arithmetic on the calling thread.
 * Every call is finished when it returns, so there is nothing to wait for.
 *
 * <p>A closed buffer's memory is freed by the garbage collector; the JVM's limit for all of them
 * together is {@code -XX:MaxDirectMemorySize}.
 */
public final class HostDevice implements BackendDevice {
  /** The kind of this device. */
  public static final String KIND = "host";

  private static final int SEGMENT_BYTES = 1 << 30;

  private final int segmentBytes;
  private final Map<DataType, Accumulator> accumulators = new EnumMap<>(DataType.class);
  private volatile boolean closed;

  /** A device of its own; buffers of one cannot be used with another. */
  public HostDevice() {
    this(SEGMENT_BYTES);
  }

  /** For tests: segments so small that a test can cross their borders; a power of two. */
  HostDevice(int segmentBytes) {
    this.segmentBytes = segmentBytes;
  }

  @Override
  public String name() {
    return "host memory";
  }

  @Override
  public String kind() {
    return KIND;
  }

  @Override
  public AbstractDeviceBuffer allocate(DataType type, long count) {
    AbstractDeviceBuffer.requireCount(type, count);
    requireOpen();
    long bytes = count * type.sizeInBytes();
    long segments = Math.max(1, (bytes - 1) / segmentBytes + 1);
    if (segments > 1 << 20) {
      throw new IllegalArgumentException(
          "count is too large for host memory: type=" + type + ", count=" + count);
    }
    ByteBuffer[] memory = new ByteBuffer[(int) segments];
    try {
      for (int i = 0; i < memory.length; i++) {
        memory[i] =
            HostBuffers.allocate((int) Math.min(segmentBytes, bytes - (long) i * segmentBytes));
      }
    } catch (OutOfMemoryError e) {
      throw new GradientSyncException(
          "out of host memory: type="
              + type
              + ", count="
              + count
              + ", bytes="
              + bytes
              + "; close buffers or raise -XX:MaxDirectMemorySize",
          e);
    }
    return new HostBuffer(this, type, count, memory, shift(segmentBytes / type.sizeInBytes()));
  }

  /**
   * Makes memory that someone else allocated usable as a buffer, in place.
   *
   * @param type the element type
   * @param memory a direct, writable buffer in native byte order, of which the part between
   *     position and limit is used: it stays its owner's
   * @return a buffer that the caller closes, which leaves the memory as it is
   * @throws IllegalArgumentException if it is not such a buffer, or not a whole number of elements
   */
  public AbstractDeviceBuffer wrap(DataType type, ByteBuffer memory) {
    Objects.requireNonNull(type, "type");
    Objects.requireNonNull(memory, "memory");
    requireOpen();
    if (!memory.isDirect() || memory.isReadOnly()) {
      throw new IllegalArgumentException(
          "memory must be direct and writable: memory=" + memory + "; arrays go through copyFrom");
    }
    if (memory.remaining() % type.sizeInBytes() != 0) {
      throw new IllegalArgumentException(
          "memory is not a whole number of elements: bytes="
              + memory.remaining()
              + ", type="
              + type);
    }
    ByteBuffer slice = memory.slice().order(ByteOrder.nativeOrder());
    int count = memory.remaining() / type.sizeInBytes();
    return new HostBuffer(this, type, count, new ByteBuffer[] {slice}, Integer.SIZE);
  }

  @Override
  public void reduce(DeviceBuffer[] sources, DeviceBuffer target, ReduceOp op) {
    HostBuffer result = (HostBuffer) target;
    Accumulator accumulator = accumulator(target.type());
    for (long first = 0; first < target.count(); first += Accumulator.BLOCK) {
      int count = (int) Math.min(Accumulator.BLOCK, target.count() - first);
      for (int rank = 0; rank < sources.length; rank++) {
        HostBuffer source = (HostBuffer) sources[rank];
        if (rank == 0) {
          source.read(first, accumulator.first(), 0, count);
          accumulator.begin(count);
        } else {
          source.read(first, accumulator.incoming(), 0, count);
          accumulator.combine(op, count);
        }
      }
      result.write(first, accumulator.finish(op, sources.length, count), 0, count);
    }
    if (accumulator.takeMaybeNaN()) {
      for (long first = 0; first < target.count(); first += Accumulator.BLOCK) {
        int count = (int) Math.min(Accumulator.BLOCK, target.count() - first);
        result.read(first, accumulator.incoming(), 0, count);
        result.write(first, accumulator.canonicalize(count), 0, count);
      }
    }
  }

  @Override
  public void await(DeviceBuffer buffer) {
    // every call is finished when it returns
  }

  @Override
  public boolean isClosed() {
    return closed;
  }

  @Override
  public void close() {
    closed = true;
  }

  @Override
  public String toString() {
    return name();
  }

  private static int shift(int powerOfTwo) {
    return Integer.numberOfTrailingZeros(powerOfTwo);
  }

  private void requireOpen() {
    if (closed) {
      throw new IllegalStateException("device is closed: device=" + name());
    }
  }

  private Accumulator accumulator(DataType type) {
    Accumulator accumulator = accumulators.get(type);
    if (accumulator == null) {
      accumulator = Accumulator.of(type);
      accumulators.put(type, accumulator);
    }
    return accumulator;
  }
}
