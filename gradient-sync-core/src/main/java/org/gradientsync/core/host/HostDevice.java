package org.gradientsync.core.host;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Objects;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.Event;
import org.gradientsync.GradientSyncException;
import org.gradientsync.ReduceOp;
import org.gradientsync.Stream;
import org.gradientsync.core.backend.HostProducts;
import org.gradientsync.spi.AbstractDeviceBuffer;
import org.gradientsync.spi.BackendDevice;
import org.gradientsync.spi.CallInterceptor;
import org.gradientsync.spi.Resources;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Host memory as a device: buffers outside the Java heap, arithmetic on the calling thread. Every
 * call is complete when it returns, so there is nothing to wait for.
 *
 * <p>Buffers that no other process maps are direct memory, which {@code -XX:MaxDirectMemorySize}
 * limits, and which the garbage collector frees once they are closed. Shared ones are files of
 * {@code /dev/shm}, and closing frees them at once.
 */
public final class HostDevice implements BackendDevice {
  /** The kind of this device. */
  public static final String KIND = "host";

  private static final Logger log = LoggerFactory.getLogger(HostDevice.class);
  private static final int SEGMENT_BYTES = 1 << 30;

  /** The maximum number of segments of a buffer. */
  static final int MAX_SEGMENTS = 1 << 20;

  private final int segmentBytes;
  private final ThreadLocal<HostArithmetic> arithmetic =
      ThreadLocal.withInitial(HostArithmetic::new);
  private final ThreadLocal<HostPieces> pieces = ThreadLocal.withInitial(HostPieces::new);
  private volatile SharedFiles files;
  private volatile boolean warned;
  private volatile CallInterceptor interceptor; // or null
  private volatile boolean closed;

  /** A new device. Its buffers cannot be used with another device. */
  public HostDevice() {
    this(SEGMENT_BYTES);
  }

  /** For tests: small segments, a power of two. */
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
    BackendDevice.requireCount(type, count);
    requireOpen();
    long bytes = count * type.sizeInBytes();
    long segments = Math.max(1, (bytes - 1) / segmentBytes + 1);
    if (segments > MAX_SEGMENTS) {
      throw new IllegalArgumentException(
          "count is too large for host memory: type=" + type + ", count=" + count);
    }
    HostBuffer buffer =
        new HostBuffer(this, type, count, memory(type, count, (int) segments), shift(type));
    buffer.warnIfNeverClosed();
    return buffer;
  }

  private HostMemory memory(DataType type, long count, int segments) {
    long bytes = count * type.sizeInBytes();
    IOException full = null;
    if (files != null && bytes > 0) {
      try {
        return files.allocate(bytes, segmentBytes);
      } catch (TooManyMappingsException e) { // ordinary memory would need mappings, too
        throw new GradientSyncException(
            "out of host memory: type=%s, count=%s, bytes=%s; %s"
                .formatted(type, count, bytes, e.getMessage()),
            e);
      } catch (IOException e) {
        full = e;
      }
    }
    HostMemory memory = HostMemory.ofPrivate(ordinary(type, count, segments));
    if (full != null && !warned) {
      warned = true;
      log.warn(
          "a buffer cannot be in /dev/shm, so reductions go through messages, which is slower:"
              + " bytes={}, cause={}",
          bytes,
          full.toString());
    }
    return memory;
  }

  private ByteBuffer[] ordinary(DataType type, long count, int segments) {
    long bytes = count * type.sizeInBytes();
    ByteBuffer[] memory = new ByteBuffer[segments];
    try {
      for (int i = 0; i < segments; i++) {
        long left =
            bytes - (long) i * segmentBytes; // checked for each segment: others allocate, too
        memory[i] = FreeMemory.OF_THIS_MACHINE.allocate((int) Math.min(segmentBytes, left), left);
      }
    } catch (OutOfMemoryError | IOException e) {
      throw new GradientSyncException(
          "out of host memory: type=%s, count=%s, bytes=%s; %s"
              .formatted(
                  type,
                  count,
                  bytes,
                  e instanceof IOException
                      ? e.getMessage()
                      : "close buffers or raise -XX:MaxDirectMemorySize"),
          e);
    }
    return memory;
  }

  /**
   * {@return the shared files in which buffers are allocated from now on, as long as there is room;
   * always the same ones, which this device closes}
   */
  public synchronized SharedFiles share() {
    if (files == null) {
      files = new SharedFiles();
    }
    return files;
  }

  /** Allocates buffers in these files from now on, and closes them at the end. */
  public synchronized void share(SharedFiles newFiles) {
    files = newFiles;
  }

  /**
   * Maps memory that another process's device has allocated, for reading.
   *
   * @param type the element type that it has there
   * @param owner the other process's {@link SharedFiles#owner()}
   * @param id its {@link HostBuffer#memoryId()} there
   * @return a buffer on all of it
   */
  public HostBuffer map(DataType type, SharedFiles.Owner owner, long id) {
    HostMemory memory = SharedFiles.open(owner, id, segmentBytes);
    long bytes = 0;
    for (int i = 0; i < memory.segments(); i++) {
      bytes += memory.segment(i).capacity();
    }
    return new HostBuffer(this, type, bytes / type.sizeInBytes(), memory, shift(type));
  }

  /**
   * Wraps memory of the caller as a buffer, in place.
   *
   * @param memory a direct, writable buffer in native byte order. The part from position to limit
   *     is used. The caller keeps the memory
   * @return a buffer that the caller closes; closing it does not change the memory
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
    if (memory.order() != ByteOrder.nativeOrder()) {
      throw new IllegalArgumentException(
          "memory must be in native byte order: order="
              + memory.order()
              + "; call order(ByteOrder.nativeOrder()) before filling it");
    }
    if (memory.remaining() % type.sizeInBytes() != 0) {
      throw new IllegalArgumentException(
          "memory is not a whole number of elements: bytes=%s, type=%s"
              .formatted(memory.remaining(), type));
    }
    ByteBuffer slice = memory.slice().order(ByteOrder.nativeOrder());
    int count = memory.remaining() / type.sizeInBytes();
    return new HostBuffer(this, type, count, HostMemory.ofPrivate(slice), Integer.SIZE);
  }

  @Override
  public void reduce(DeviceBuffer[] sources, DeviceBuffer target, ReduceOp op) {
    HostBuffer result = (HostBuffer) target;
    if (sources.length == 1) {
      result.copyRange(0, (HostBuffer) sources[0], target.count());
    } else {
      arithmetic.get().reduce(sources, result, op);
    }
  }

  @Override
  public void accumulate(
      DeviceBuffer running, DeviceBuffer[] sources, DeviceBuffer target, ReduceOp op) {
    accumulate(running, sources, target, target.count(), op);
  }

  @Override
  public void finish(
      DeviceBuffer running, DeviceBuffer[] sources, DeviceBuffer target, ReduceOp op, int ranks) {
    arithmetic.get().finish((HostBuffer) running, sources, (HostBuffer) target, op, ranks);
  }

  /**
   * As {@link #accumulate}, for the first elements.
   *
   * @param running the sum so far in the accumulator's type, or null
   */
  public void accumulate(
      DeviceBuffer running, DeviceBuffer[] sources, DeviceBuffer target, long count, ReduceOp op) {
    arithmetic.get().accumulate((HostBuffer) running, sources, (HostBuffer) target, count, op);
  }

  /**
   * Divides and rounds the first elements of a complete reduction.
   *
   * @param total in the accumulator's type
   * @param ranks the divisor of an average
   */
  public void round(DeviceBuffer total, DeviceBuffer target, long count, ReduceOp op, int ranks) {
    arithmetic.get().round((HostBuffer) total, (HostBuffer) target, count, op, ranks);
  }

  @Override
  public long firstNotFinite(DeviceBuffer buffer) {
    return arithmetic.get().firstNotFinite((HostBuffer) buffer);
  }

  @Override
  public double sumOfSquares(DeviceBuffer buffer) {
    return pieces.get().sumOfSquares(buffer);
  }

  @Override
  public void scale(DeviceBuffer buffer, double factor) {
    pieces.get().multiply(buffer, factor);
  }

  @Override
  public void multiply(
      double alpha,
      DeviceBuffer a,
      boolean transposeA,
      DeviceBuffer b,
      boolean transposeB,
      double beta,
      DeviceBuffer c,
      int rows,
      int inner,
      int columns) {
    HostProducts.multiply(alpha, a, transposeA, b, transposeB, beta, c, rows, inner, columns);
  }

  @Override
  public void addScaled(double factor, DeviceBuffer x, DeviceBuffer y) {
    HostProducts.addScaled(factor, x, y);
  }

  @Override
  public void sumRows(DeviceBuffer source, DeviceBuffer table, int width, DeviceBuffer target) {
    BackendDevice.requireRows(source, table, width, target);
    HostRows.sum((HostBuffer) source, (HostBuffer) table, width, (HostBuffer) target);
  }

  @Override
  public String products(DeviceBuffer buffer) {
    return HostProducts.NAME;
  }

  @Override
  public void convert(DeviceBuffer source, DeviceBuffer target) {
    BackendDevice.requireConvertible(source, target);
    arithmetic.get().convert((HostBuffer) source, (HostBuffer) target);
  }

  @Override
  public void copy(DeviceBuffer source, DeviceBuffer target) {
    ((HostBuffer) target).copyRange(0, (HostBuffer) source, target.count());
  }

  @Override
  public void await(DeviceBuffer buffer) {
    // every call is finished when it returns
  }

  @Override
  public Stream stream() {
    return HostStream.QUEUE;
  }

  @Override
  public Stream createStream(boolean sparing) {
    return HostStream.QUEUE;
  }

  @Override
  public Event createEvent(boolean timed) {
    return new HostEvent();
  }

  @Override
  public DeviceBuffer on(Stream stream, DeviceBuffer buffer) {
    return buffer.slice(0, buffer.count());
  }

  @Override
  public Stream streamOf(DeviceBuffer buffer) {
    return HostStream.QUEUE;
  }

  @Override
  public void intercept(CallInterceptor newInterceptor) {
    interceptor = newInterceptor;
  }

  @Override
  public CallInterceptor interceptor() {
    return interceptor;
  }

  @Override
  public boolean isClosed() {
    return closed;
  }

  @Override
  public void close() {
    closed = true;
    Resources.closeAll(files);
  }

  @Override
  public String toString() {
    return name();
  }

  /** The number of elements in a segment, as a power of two. */
  int shift(DataType type) {
    return Integer.numberOfTrailingZeros(segmentBytes / type.sizeInBytes());
  }

  private void requireOpen() {
    if (closed) {
      throw new IllegalStateException("device is closed: device=" + name());
    }
  }
}
