package org.gradientsync.cuda.compute;

import java.util.IdentityHashMap;
import java.util.Map;
import java.util.Objects;
import jcuda.driver.CUstream;
import jcuda.jcublas.cublasHandle;
import org.gradientsync.DataType;
import org.gradientsync.UnavailableException;
import org.gradientsync.cuda.CudaBuffer;
import org.gradientsync.cuda.CudaDevice;
import org.gradientsync.cuda.CudaException;
import org.gradientsync.cuda.CudaStream;
import org.gradientsync.cuda.internal.driver.BlasApi;
import org.gradientsync.cuda.internal.driver.DriverAccess;
import org.gradientsync.cuda.internal.driver.Gpu;
import org.gradientsync.cuda.internal.driver.GpuStream;
import org.gradientsync.cuda.internal.driver.JCublasApi;
import org.gradientsync.spi.Availability;
import org.gradientsync.spi.Resources;

/**
 * The few operations of cuBLAS that training in Java asks for first, on FLOAT32 and FLOAT64
 * buffers; made by {@link #create}.
 *
 * <p>Each call is enqueued on the stream given, behind what was enqueued there before, and returns
 * at once; from a stream's second call on it allocates nothing. A buffer that belongs to another
 * stream has to be waited for with an event. Safe for use by several threads, whose calls are
 * enqueued one after the other.
 */
public final class CudaBlas implements AutoCloseable {
  /** How products of FLOAT32 matrices are computed; those of FLOAT64 are not touched by it. */
  public enum MathMode {
    /**
     * Elements are multiplied and added as float32. cuBLAS's default mode, and the one that a
     * {@code CudaBlas} begins with.
     */
    FLOAT32,
    /**
     * Elements may be rounded to TF32, with 10 bits of mantissa instead of 23, so that the tensor
     * cores can multiply them; sums are float32. On GPUs before Ampere the same as FLOAT32.
     */
    TF32
  }

  /** cuBLAS counts elements in an int. */
  private static final long MOST_ELEMENTS = 1 << 30;

  private static final int WORKSPACE_ALIGNMENT = 256;
  private static final int LEAST_WORKSPACE = 16 << 10;

  private final CudaDevice device;
  private final Gpu gpu;
  private final BlasApi api;
  private final cublasHandle handle;
  private final Map<CudaStream, CudaBuffer> workspaces = new IdentityHashMap<>();
  private CudaStream current;
  private MathMode mathMode = MathMode.FLOAT32;
  private boolean closed;

  CudaBlas(CudaDevice device, BlasApi api) {
    this.device = device;
    this.api = api;
    gpu = DriverAccess.gpu(device);
    gpu.makeCurrent();
    handle = api.create();
  }

  /**
   * Starts cuBLAS on a GPU, where {@link #availability()} reports it.
   *
   * @param device the GPU
   * @return a library context that the caller closes
   * @throws UnavailableException if cuBLAS does not load here
   */
  public static CudaBlas create(CudaDevice device) {
    DriverAccess.gpu(device).requireOpen();
    return new CudaBlas(device, JCublasApi.load());
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
   * Chooses how later products of FLOAT32 matrices are computed. cuBLAS obeys the environment
   * variable {@code NVIDIA_TF32_OVERRIDE=0} before this.
   *
   * @param mode {@link MathMode#FLOAT32} if never chosen
   * @throws IllegalStateException if this is closed
   */
  public synchronized void setMathMode(MathMode mode) {
    Objects.requireNonNull(mode, "mode");
    requireUsable();
    gpu.makeCurrent();
    api.useTf32(handle, mode == MathMode.TF32);
    mathMode = mode;
  }

  /**
   * How products of FLOAT32 matrices are computed.
   *
   * @return the mode chosen last
   */
  public synchronized MathMode mathMode() {
    return mathMode;
  }

  /**
   * Gives later calls on a stream scratch memory of their own, in the place of cuBLAS's, which all
   * streams of this object share. The same calls then give the same bits in each run, whatever runs
   * on other streams meanwhile, and can be captured into a graph. With calls on one stream only,
   * bits are the same in each run without it, too.
   *
   * @param stream whose calls use it
   * @param workspace of any type, 16 KiB or more, beginning at a multiple of 256 bytes as every
   *     allocation does; NVIDIA recommends 32 MiB on Hopper and 4 MiB before it. Its contents are
   *     overwritten. It must stay open as long as calls are enqueued on the stream
   * @throws IllegalArgumentException if it is too small, not aligned, or belongs to another GPU
   * @throws IllegalStateException if this, the stream or the workspace is closed
   */
  public synchronized void setWorkspace(CudaStream stream, CudaBuffer workspace) {
    requireUsable();
    DriverAccess.streamOn(gpu, stream);
    requireOwn("workspace", workspace);
    if (workspace.sizeInBytes() < LEAST_WORKSPACE
        || workspace.address() % WORKSPACE_ALIGNMENT != 0) {
      throw new IllegalArgumentException(
          "workspace is too small or not aligned: bytes="
              + workspace.sizeInBytes()
              + ", least="
              + LEAST_WORKSPACE
              + ", address=0x"
              + Long.toHexString(workspace.address())
              + ", alignment="
              + WORKSPACE_ALIGNMENT);
    }
    workspaces.keySet().removeIf(known -> DriverAccess.stream(known).isClosed());
    workspaces.put(stream, workspace);
    current = null; // the next call tells cuBLAS
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
  public void multiply(
      CudaStream stream,
      CudaBuffer a,
      CudaBuffer b,
      CudaBuffer c,
      int rows,
      int inner,
      int columns) {
    multiply(stream, 1, a, false, b, false, 0, c, rows, inner, columns);
  }

  /**
   * Multiplies two matrices that lie row by row, BLAS's gemm: C = alpha op(A) op(B) + beta C, where
   * op(A) is rows by inner, op(B) inner by columns, and C rows by columns.
   *
   * @param stream where it is enqueued
   * @param alpha rounded to the buffers' type
   * @param a rows times inner elements
   * @param transposeA false if A lies there as rows by inner; true if it lies as inner by rows, and
   *     op(A) is A transposed
   * @param b inner times columns elements
   * @param transposeB false if B lies there as inner by columns; true if it lies as columns by
   *     inner, and op(B) is B transposed
   * @param beta rounded to the buffers' type; if it is 0, C is overwritten, whatever it held, and
   *     if it is 1, the product is added to it
   * @param c rows times columns elements; must not overlap a or b
   * @param rows of op(A) and C, 0 or more
   * @param inner columns of op(A) and rows of op(B), 0 or more
   * @param columns of op(B) and C, 0 or more
   * @throws IllegalArgumentException if a buffer has another number of elements, is of another type
   *     than c or neither FLOAT32 nor FLOAT64, or belongs to another GPU, or if c overlaps a or b
   * @throws IllegalStateException if this, the stream or a buffer is closed
   * @throws CudaException if cuBLAS refuses it
   */
  public synchronized void multiply(
      CudaStream stream,
      double alpha,
      CudaBuffer a,
      boolean transposeA,
      CudaBuffer b,
      boolean transposeB,
      double beta,
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
    if (c.count() == 0) {
      return;
    }
    if (inner == 0) { // a sum of nothing
      timesBeta(stream, beta, c);
      return;
    }
    // What lies row by row is the transposed matrix column by column: C^T = op(B)^T op(A)^T.
    api.multiply(
        handle,
        c.type(),
        transposeB,
        transposeA,
        columns,
        rows,
        inner,
        alpha,
        b.address(),
        transposeB ? inner : columns,
        a.address(),
        transposeA ? rows : inner,
        beta,
        c.address(),
        columns);
  }

  private void timesBeta(CudaStream stream, double beta, CudaBuffer c) {
    if (beta == 0) {
      gpu.api().fillZero(c.address(), c.sizeInBytes(), DriverAccess.stream(stream).handle());
    } else if (beta != 1) {
      scale(stream, beta, c);
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
    if (!closed) {
      closed = true;
      Resources.closeAll(gpu::makeCurrent, () -> api.destroy(handle));
    }
  }

  private void begin(CudaStream stream) {
    requireUsable();
    GpuStream on = DriverAccess.streamOn(gpu, stream);
    gpu.makeCurrent();
    CUstream streamHandle = on.handle();
    CudaBuffer workspace = workspaces.get(stream);
    if (workspace != null) {
      workspace.requireOpen();
    }
    if (stream != current) {
      current = null;
      api.useStream(handle, streamHandle);
      if (workspace != null) {
        api.useWorkspace(handle, workspace.address(), workspace.sizeInBytes());
      }
      current = stream;
    }
  }

  private void requireUsable() {
    if (closed || device.isClosed()) {
      throw new IllegalStateException("blas is closed: device=" + device.name());
    }
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
    requireOwn(name, buffer);
    if (buffer.type() != DataType.FLOAT32 && buffer.type() != DataType.FLOAT64) {
      throw new IllegalArgumentException(
          "blas takes FLOAT32 and FLOAT64 buffers: " + name + "=" + buffer);
    }
  }

  private void requireOwn(String name, CudaBuffer buffer) {
    buffer.requireOpen();
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
