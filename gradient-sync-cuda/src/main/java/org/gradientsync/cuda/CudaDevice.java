package org.gradientsync.cuda;

import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import jcuda.driver.CUstream;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.DeviceException;
import org.gradientsync.ReduceOp;
import org.gradientsync.Stream;
import org.gradientsync.cuda.internal.driver.CudaApi;
import org.gradientsync.cuda.internal.driver.DriverAccess;
import org.gradientsync.cuda.internal.driver.Gpu;
import org.gradientsync.cuda.internal.driver.GpuEvent;
import org.gradientsync.cuda.internal.driver.GpuStream;
import org.gradientsync.cuda.internal.driver.PinnedStaging;
import org.gradientsync.spi.BackendDevice;
import org.gradientsync.spi.CallInterceptor;
import org.gradientsync.spi.Resources;

/**
 * A GPU. All work runs in the GPU's primary context, which the CUDA runtime and other libraries
 * also use, so memory and streams can be shared with them.
 */
public final class CudaDevice implements BackendDevice {
  /** The {@link #kind} of all CUDA devices. */
  public static final String KIND = "cuda";

  private final Gpu gpu;
  private final CudaStream stream;
  private final PinnedStaging staging;
  private final CudaArithmetic arithmetic;
  private volatile CallInterceptor interceptor; // or null

  static {
    DriverAccess.set(
        new DriverAccess() {
          @Override
          protected Gpu gpuOf(BackendDevice device) {
            return ((CudaDevice) device).gpu;
          }

          @Override
          protected GpuStream streamOf(Stream stream) {
            return ((CudaStream) stream).driver();
          }
        });
  }

  CudaDevice(CudaApi api, int ordinal) {
    gpu = new Gpu(api, ordinal);
    arithmetic = new CudaArithmetic(gpu);
    Resources parts = new Resources();
    try {
      stream = parts.add(new CudaStream(this, GpuStream.create(gpu)));
      staging = parts.add(new PinnedStaging(gpu));
    } catch (RuntimeException | Error e) {
      parts.closeAfter(e);
      throw e;
    }
  }

  @Override
  public String name() {
    return gpu.name();
  }

  @Override
  public String kind() {
    return KIND;
  }

  /** {@return the GPU's number, from 0, among the GPUs that are visible to this process} */
  public int ordinal() {
    return gpu.ordinal();
  }

  /** {@return the GPU's PCI address, for example {@code 0000:1b:00.0}} */
  public String pciAddress() {
    return gpu.pciAddress();
  }

  /**
   * {@return this device's own stream, to which a buffer belongs unless it was given another; the
   * caller must not close it}
   */
  @Override
  public CudaStream stream() {
    return stream;
  }

  /** {@return a new stream that does not wait for CUDA's default one; the caller closes it} */
  public CudaStream createStream() {
    gpu.requireOpen();
    return new CudaStream(this, GpuStream.create(gpu));
  }

  /**
   * Wraps another library's stream.
   *
   * @param handle its CUstream or cudaStream_t
   * @return a wrapper; closing it does not destroy the other library's stream
   * @throws IllegalArgumentException if the stream belongs to another GPU or context
   */
  public CudaStream wrapStream(long handle) {
    gpu.requireOpen();
    GpuStream wrapped = GpuStream.wrap(gpu, handle);
    if (!gpu.api().contextOf(wrapped.handle()).equals(gpu.context())) {
      throw new IllegalArgumentException(
          "stream belongs to another device or context: handle=0x%s, device=%s"
              .formatted(Long.toHexString(handle), gpu.ordinal()));
    }
    return new CudaStream(this, wrapped);
  }

  /**
   * Creates an event.
   *
   * @param timing whether the event records its time; an event that does not is cheaper
   * @return an event that the caller closes
   */
  @Override
  public CudaEvent createEvent(boolean timing) {
    gpu.requireOpen();
    return new CudaEvent(this, GpuEvent.create(gpu, timing), timing);
  }

  @Override
  public CudaBuffer allocate(DataType type, long count) {
    return allocate(type, count, stream);
  }

  /**
   * Allocates a buffer that belongs to a stream. All elements are zero.
   *
   * @param type the element type
   * @param count the number of elements, 0 or more
   * @param on a stream of this GPU
   * @return a buffer that the caller closes
   * @throws DeviceException if there is not enough memory; the message gives the requested and the
   *     free bytes
   */
  public CudaBuffer allocate(DataType type, long count, CudaStream on) {
    BackendDevice.requireCount(type, count);
    gpu.requireOpen();
    requireOwn(on);
    gpu.makeCurrent();
    long bytes = count * type.sizeInBytes();
    long address = bytes == 0 ? 0 : gpu.memory().allocateZeroed(bytes, on.driver().handle());
    CudaBuffer buffer = new CudaBuffer(this, type, count, on, address, true);
    buffer.warnIfNeverClosed();
    return buffer;
  }

  /**
   * Wraps memory that other code has allocated, without copying it. Other ranks may map the memory,
   * so free it only after all ranks have closed the buffers that they reduced with it. A {@code
   * barrier()} after closing ensures that.
   *
   * @param type the element type
   * @param address the address of the first element on this GPU
   * @param count the number of elements
   * @param on the stream on which the other code uses the memory; the buffer belongs to it
   * @return a buffer that the caller closes, which does not free the memory
   * @throws IllegalArgumentException if the memory is not this GPU's, or is not aligned to its
   *     elements
   */
  public CudaBuffer wrap(DataType type, long address, long count, CudaStream on) {
    BackendDevice.requireCount(type, count);
    gpu.requireOpen();
    requireOwn(on);
    gpu.makeCurrent();
    int owner = address == 0 ? -1 : gpu.api().deviceOf(address);
    if (owner != gpu.ordinal() || address % type.sizeInBytes() != 0) {
      throw new IllegalArgumentException(
          "not memory of this GPU, or not aligned: address=0x%s, device=%s, expected=%s, type=%s"
              .formatted(
                  Long.toHexString(address), owner < 0 ? "none" : owner, gpu.ordinal(), type));
    }
    return new CudaBuffer(this, type, count, on, address, false);
  }

  @Override
  public void reduce(DeviceBuffer[] sources, DeviceBuffer target, ReduceOp op) {
    arithmetic.reduce(sources, target, op);
  }

  @Override
  public void accumulate(
      DeviceBuffer running, DeviceBuffer[] sources, DeviceBuffer target, ReduceOp op) {
    arithmetic.accumulate(running, sources, target, op);
  }

  @Override
  public void finish(
      DeviceBuffer running, DeviceBuffer[] sources, DeviceBuffer target, ReduceOp op, int ranks) {
    arithmetic.finish(running, sources, target, op, ranks);
  }

  @Override
  public void copy(DeviceBuffer source, DeviceBuffer target) {
    if (target.count() > 0) {
      CudaBuffer from = (CudaBuffer) source;
      CudaBuffer to = (CudaBuffer) target;
      CUstream on = arithmetic.streamFor(to);
      gpu.api().copy(to.pointer(), from.pointer(), to.sizeInBytes(), on);
    }
  }

  /** A call costs some 8 us more than its bytes, two copies of 1 MiB within the GPU 1.3 us. */
  @Override
  public long packsUpTo() {
    return 4 << 20;
  }

  @Override
  public void copyAll(DeviceBuffer[] sources, DeviceBuffer[] targets) {
    arithmetic.copyAll(sources, targets);
  }

  @Override
  public void convert(DeviceBuffer source, DeviceBuffer target) {
    arithmetic.convert(source, target);
  }

  @Override
  public long firstNotFinite(DeviceBuffer buffer) {
    return arithmetic.firstNotFinite(buffer);
  }

  @Override
  public double sumOfSquares(DeviceBuffer buffer) {
    return arithmetic.sumOfSquares(buffer);
  }

  @Override
  public void scale(DeviceBuffer buffer, double factor) {
    arithmetic.scale(buffer, factor);
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
    arithmetic.multiply(alpha, a, transposeA, b, transposeB, beta, c, rows, inner, columns);
  }

  @Override
  public void addScaled(double factor, DeviceBuffer x, DeviceBuffer y) {
    arithmetic.addScaled(factor, x, y);
  }

  @Override
  public void sumRows(DeviceBuffer source, DeviceBuffer table, int width, DeviceBuffer target) {
    arithmetic.sumRows(source, table, width, target);
  }

  @Override
  public String products(DeviceBuffer buffer) {
    return arithmetic.products(buffer);
  }

  @Override
  public List<String> state() {
    List<String> lines = new ArrayList<>();
    lines.add("");
    lines.add("GPU " + gpu.ordinal() + ": " + this + (gpu.isClosed() ? ", closed" : ""));
    if (!gpu.isClosed()) {
      gpu.makeCurrent();
      CudaApi api = gpu.api();
      long[] memory = api.memoryInfo();
      lines.add("  memory: free=" + memory[0] + ", total=" + memory[1]);
      lines.add(
          "  this device's stream: " + (api.isDone(stream.driver().handle()) ? "idle" : "busy"));
      lines.add(
          "  driver: CUDA " + api.driverVersion() / 1000 + "." + api.driverVersion() % 1000 / 10);
    }
    return lines;
  }

  @Override
  public void await(DeviceBuffer buffer) {
    ((CudaBuffer) buffer).stream().await();
  }

  @Override
  public CudaStream createStream(boolean sparing) {
    gpu.requireOpen();
    return new CudaStream(this, GpuStream.createUrgent(gpu, sparing));
  }

  @Override
  public CudaBuffer on(Stream stream, DeviceBuffer buffer) {
    CudaBuffer own = (CudaBuffer) buffer;
    requireOwn((CudaStream) stream);
    return new CudaBuffer(own, 0, own.count(), (CudaStream) stream);
  }

  @Override
  public CudaStream streamOf(DeviceBuffer buffer) {
    return ((CudaBuffer) buffer).stream();
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
    return gpu.isClosed();
  }

  @Override
  public void close() {
    if (gpu.isClosed()) {
      return;
    }
    Resources.closeAll(
        gpu::makeCurrent,
        stream::await,
        staging,
        gpu.kernels(),
        gpu.blas(),
        gpu::markClosed,
        gpu.memory()::freeBuffers,
        gpu.memory().frees()::free,
        stream);
  }

  @Override
  public String toString() {
    return gpu.toString();
  }

  @Override
  public void makeCurrent() {
    gpu.makeCurrent();
  }

  Gpu gpu() {
    return gpu;
  }

  PinnedStaging staging() {
    return staging;
  }

  void requireOwn(CudaStream other) {
    Objects.requireNonNull(other, "stream");
    other.driver().requireOn(gpu);
  }
}
