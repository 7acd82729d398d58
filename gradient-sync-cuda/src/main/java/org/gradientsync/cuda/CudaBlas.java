package org.gradientsync.cuda;

import jcuda.jcublas.cublasHandle;
import org.gradientsync.DataType;
import org.gradientsync.UnavailableException;
import org.gradientsync.spi.Availability;

/**
 * The few operations of cuBLAS that training in Java asks for first, on FLOAT32 and FLOAT64
 * buffers; made by {@link CudaDevice#blas()}.
 *
 * <p>Each call is enqueued on the stream given, behind what was enqueued there before, and returns
 * at once. A buffer that belongs to another stream has to be waited for with an event. Safe for use
 * by several threads, whose calls are enqueued one after the other.
 */
public final class CudaBlas implements AutoCloseable {
  /** cuBLAS counts elements in an int. */
  private static final long MOST_ELEMENTS = 1 << 30;

  private final CudaDevice device;
  private final BlasApi api;
  private final cublasHandle handle;
  private boolean closed;

  CudaBlas(CudaDevice device, BlasApi api) {
    this.device = device;
    this.api = api;
    device.makeCurrent();
    handle = api.create();
  }

  /**
   * Whether cuBLAS can be used here.
   *
   * @return usable, or one line that says what is missing
   */
  public static Availability availability() {
    try {
      JCublasApi.load();
      return Availability.yes();
    } catch (UnavailableException e) {
      return Availability.no(e.getMessage());
    }
  }

  /**
   * Multiplies two matrices that lie row by row: C (rows by columns) = A (rows by inner) times B
   * (inner by columns).
   *
   * @param stream where it is enqueued
   * @param a rows times inner elements
   * @param b inner times columns elements
   * @param c rows times columns elements, which are overwritten; must not overlap a or b
   * @param rows of A and C, 0 or more
   * @param inner columns of A and rows of B, 0 or more
   * @param columns of B and C, 0 or more
   */
  public synchronized void multiply(
      CudaStream stream,
      CudaBuffer a,
      CudaBuffer b,
      CudaBuffer c,
      int rows,
      int inner,
      int columns) {
    requireMatrix("a", a, rows, inner, c.type());
    requireMatrix("b", b, inner, columns, c.type());
    requireMatrix("c", c, rows, columns, c.type());
    requireApart("a", a, c);
    requireApart("b", b, c);
    begin(stream);
    if (inner == 0) { // a sum of nothing
      if (c.count() > 0) {
        device.api().fillZero(c.address(), c.sizeInBytes(), stream.handle());
      }
    } else if (c.count() > 0) {
      // What lies row by row is the transposed matrix column by column, and C^T = B^T A^T.
      api.multiply(handle, c.type(), columns, rows, inner, b.address(), a.address(), c.address());
    }
  }

  /**
   * Multiplies each element by a number: x = factor x.
   *
   * @param stream where it is enqueued
   * @param factor rounded to the buffer's type
   * @param x changed in place
   */
  public synchronized void scale(CudaStream stream, double factor, CudaBuffer x) {
    requireFloating("x", x);
    begin(stream);
    for (long at = 0; at < x.count(); at += MOST_ELEMENTS) {
      int count = (int) Math.min(MOST_ELEMENTS, x.count() - at);
      api.scale(handle, x.type(), count, factor, x.address() + at * x.type().sizeInBytes());
    }
  }

  /**
   * Adds a multiple, BLAS's axpy: y = factor x + y.
   *
   * @param stream where it is enqueued
   * @param factor rounded to the buffers' type
   * @param x as many elements as y, of the same type
   * @param y changed in place
   */
  public synchronized void addScaled(CudaStream stream, double factor, CudaBuffer x, CudaBuffer y) {
    requireFloating("x", x);
    requireFloating("y", y);
    if (x.type() != y.type() || x.count() != y.count()) {
      throw new IllegalArgumentException("buffers do not match: x=" + x + ", y=" + y);
    }
    begin(stream);
    for (long at = 0; at < x.count(); at += MOST_ELEMENTS) {
      int count = (int) Math.min(MOST_ELEMENTS, x.count() - at);
      long offset = at * x.type().sizeInBytes();
      api.addScaled(handle, x.type(), count, factor, x.address() + offset, y.address() + offset);
    }
  }

  /** Ends cuBLAS on this GPU, once the work enqueued is done. A second call does nothing. */
  @Override
  public synchronized void close() {
    if (!closed && !device.isClosed()) {
      device.makeCurrent();
      api.destroy(handle);
    }
    closed = true;
  }

  private void begin(CudaStream stream) {
    if (closed || device.isClosed()) {
      throw new IllegalStateException("blas is closed: device=" + device.name());
    }
    device.requireOwn(stream);
    device.makeCurrent();
    api.useStream(handle, stream.handle());
  }

  private void requireMatrix(String name, CudaBuffer m, int rows, int columns, DataType type) {
    requireFloating(name, m);
    if (rows < 0 || columns < 0 || m.count() != (long) rows * columns || m.type() != type) {
      throw new IllegalArgumentException(
          "matrix does not fit: "
              + name
              + "="
              + m
              + ", expected="
              + type
              + ", rows="
              + rows
              + ", columns="
              + columns);
    }
  }

  private void requireFloating(String name, CudaBuffer buffer) {
    buffer.requireOpen();
    if (buffer.type() != DataType.FLOAT32 && buffer.type() != DataType.FLOAT64) {
      throw new IllegalArgumentException(
          "blas takes FLOAT32 and FLOAT64 buffers: " + name + "=" + buffer);
    }
    if (buffer.device() != device) {
      throw new IllegalArgumentException(
          "buffer belongs to another device: "
              + name
              + "="
              + buffer.device()
              + ", device="
              + device);
    }
  }

  private static void requireApart(String name, CudaBuffer input, CudaBuffer output) {
    if (input.address() < output.address() + output.sizeInBytes()
        && output.address() < input.address() + input.sizeInBytes()) {
      throw new IllegalArgumentException(
          "buffers overlap: " + name + "=" + input + ", c=" + output);
    }
  }
}
