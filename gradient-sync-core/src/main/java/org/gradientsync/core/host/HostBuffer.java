package org.gradientsync.core.host;

import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.core.backend.HostBuffers;
import org.gradientsync.spi.AbstractDeviceBuffer;
import org.gradientsync.spi.HostElement;

/**
 * A buffer in host memory outside the Java heap. A Java buffer ends at 2 GiB, so larger memory is a
 * row of segments, and only elements within one segment have {@link #hostMemory}.
 */
public final class HostBuffer extends AbstractDeviceBuffer {
  private final long offset;
  private final int segmentShift; // a segment has 2^segmentShift elements: no division in the loops
  private final HostMemory memory;
  private final Buffer[] segments;

  /** A buffer on memory whose segments have 2^segmentShift elements. */
  HostBuffer(HostDevice device, DataType type, long count, HostMemory memory, int segmentShift) {
    super(device, type, count);
    this.offset = 0;
    this.segmentShift = segmentShift;
    this.memory = memory;
    this.segments = segments(type, memory);
  }

  private HostBuffer(HostBuffer parent, DataType type, long count, int segmentShift) {
    super(parent, type, count);
    this.offset = 0;
    this.segmentShift = segmentShift;
    this.memory = parent.memory;
    this.segments = segments(type, memory);
  }

  private HostBuffer(HostBuffer parent, long offset, long count) {
    super(parent, offset, count);
    this.offset = parent.offset + offset;
    this.segmentShift = parent.segmentShift;
    this.memory = parent.memory;
    this.segments = parent.segments;
  }

  private static Buffer[] segments(DataType type, HostMemory memory) {
    Buffer[] segments = new Buffer[memory.segments()];
    for (int i = 0; i < segments.length; i++) {
      segments[i] = HostElement.of(type).view(memory.segment(i));
    }
    return segments;
  }

  @Override
  public ByteBuffer hostMemory() {
    requireOpen();
    ByteBuffer bytes = nativeView(0, count());
    if (bytes == null) {
      throw new UnsupportedOperationException(
          "buffer lies in several segments of the host's memory: buffer="
              + this
              + "; hostSegments() returns the parts of it that do not");
    }
    return bytes;
  }

  @Override
  public List<DeviceBuffer> hostSegments() {
    requireOpen();
    List<DeviceBuffer> parts = new ArrayList<>();
    for (long first = 0; first < count(); ) {
      long end = Math.min(count(), (segmentOf(first) + 1L << segmentShift) - offset);
      parts.add(slice(first, end - first));
      first = end;
    }
    return parts;
  }

  @Override
  public ByteBuffer nativeView(long first, long elements) {
    int size = type().sizeInBytes();
    if (elements == 0) {
      return HostBuffers.allocate(0);
    }
    int segment = segmentOf(first);
    if (segment != segmentOf(first + elements - 1)) {
      return null;
    }
    return memory
        .segment(segment)
        .slice(indexOf(first) * size, Math.toIntExact(elements * size))
        .order(ByteOrder.nativeOrder());
  }

  @Override
  protected AbstractDeviceBuffer view(long first, long elements) {
    return new HostBuffer(this, first, elements);
  }

  @Override
  protected void zero() {
    int size = type().sizeInBytes();
    for (long done = 0; done < count(); ) {
      int run = run(done, count() - done);
      HostBuffers.fillZero(memory.segment(segmentOf(done)), indexOf(done) * size, run * size);
      done += run;
    }
  }

  @Override
  protected void upload(Buffer source) {
    Buffer typed = typed(source);
    write(0, typed, typed.position(), typed.remaining());
  }

  @Override
  protected void download(Buffer target) {
    Buffer typed = typed(target);
    read(0, typed, typed.position(), typed.remaining());
  }

  @Override
  protected void release() {
    Arrays.fill(segments, null);
    memory.release();
  }

  /**
   * The id by which the other processes of a job find the memory of this buffer, or -1 if they
   * cannot reach it.
   */
  public long memoryId() {
    return memory.id();
  }

  /** The first element of this buffer in that memory. */
  public long memoryOffset() {
    return memory.first() / type().sizeInBytes() + offset;
  }

  /**
   * {@return a view of all of this memory of another process as another type, or this buffer, which
   * must not be a view itself} Such memory can hold buffers of several types.
   */
  public HostBuffer reinterpret(DataType type) {
    if (type == type()) {
      return this;
    }
    HostDevice device = (HostDevice) device();
    long elements = sizeInBytes() / type.sizeInBytes();
    return new HostBuffer(this, type, elements, device.shift(type));
  }

  /**
   * Copies elements from another buffer of this type.
   *
   * @param first the first element, in both buffers
   */
  public void copyRange(long first, HostBuffer source, long elements) {
    copyRange(first, source, first, elements);
  }

  /**
   * As above, from another place.
   *
   * @param from the first element in the source
   */
  public void copyRange(long first, HostBuffer source, long from, long elements) {
    if (segments.length == 1 && source.segments.length == 1) { // usually, and then it is faster
      int at = (int) (source.offset + from);
      HostBuffers.copy(source.segments[0], at, segments[0], (int) (offset + first), (int) elements);
      return;
    }
    for (long done = 0; done < elements; ) {
      int run = source.run(from + done, run(first + done, elements - done));
      HostBuffers.copy(
          source.segments[source.segmentOf(from + done)],
          source.indexOf(from + done),
          segments[segmentOf(first + done)],
          indexOf(first + done),
          run);
      done += run;
    }
  }

  /** Copies elements to a Java buffer of this type, from its index {@code at} on. */
  void read(long first, Buffer target, int at, int elements) {
    for (int done = 0; done < elements; ) {
      int run = run(first + done, elements - done);
      HostBuffers.copy(
          segments[segmentOf(first + done)], indexOf(first + done), target, at + done, run);
      done += run;
    }
  }

  /** Copies elements from a Java buffer of this type, from its index {@code at} on. */
  void write(long first, Buffer source, int at, int elements) {
    for (int done = 0; done < elements; ) {
      int run = run(first + done, elements - done);
      HostBuffers.copy(
          source, at + done, segments[segmentOf(first + done)], indexOf(first + done), run);
      done += run;
    }
  }

  private Buffer typed(Buffer host) {
    return host instanceof ByteBuffer bytes
        ? HostElement.of(type()).view(bytes.slice().order(ByteOrder.nativeOrder()))
        : host;
  }

  private int segmentOf(long element) {
    return (int) (offset + element >>> segmentShift);
  }

  private int indexOf(long element) {
    return (int) (offset + element & (1L << segmentShift) - 1);
  }

  /** The number of elements from first on that lie in first's segment, at most limit. */
  private int run(long first, long limit) {
    return (int) Math.min(limit, (1L << segmentShift) - indexOf(first));
  }
}
