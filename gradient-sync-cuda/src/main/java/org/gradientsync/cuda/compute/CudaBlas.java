package org.gradientsync.cuda.compute;

import java.util.IdentityHashMap;
import java.util.Map;
import java.util.Objects;
import jcuda.driver.CUstream;
import jcuda.jcublas.cublasHandle;
import org.gradientsync.DataType;
import org.gradientsync.DeviceException;
import org.gradientsync.UnavailableException;
import org.gradientsync.cuda.CudaBuffer;
import org.gradientsync.cuda.CudaDevice;
import org.gradientsync.cuda.CudaStream;
import org.gradientsync.cuda.internal.driver.BlasApi;
import org.gradientsync.cuda.internal.driver.DriverAccess;
import org.gradientsync.cuda.internal.driver.Gpu;
import org.gradientsync.cuda.internal.driver.GpuStream;
import org.gradientsync.cuda.internal.driver.JCublasApi;
import org.gradientsync.spi.Availability;
import org.gradientsync.spi.Resources;

/**
 * The operations of cuBLAS that training needs most, on FLOAT32 and FLOAT64 buffers. Created by
 * {@link #create}.
 *
 * <p>Each call enqueues its work on the given stream, after the work enqueued there before, and
 * returns at once. After the first call on a stream, calls allocate nothing. If a buffer belongs to
 * another stream, wait for that with an event. Safe for use by several threads, whose calls are
 * enqueued one after the other.
 */
public final class CudaBlas implements AutoCloseable {
  /** How products of FLOAT32 matrices are computed. It does not affect FLOAT64. */
  public enum MathMode {
    /**
     * Multiplies and adds in float32. This is cuBLAS's default, and the initial mode of a {@code
     * CudaBlas}.
     */
    FLOAT32,
    /**
     * Allows rounding elements to TF32, with 10 bits of mantissa instead of 23, so that the tensor
     * cores can multiply them; sums are float32. The same as FLOAT32 on GPUs before Ampere.
     */
    TF32
  }

  /** The limit of one call: cuBLAS counts elements in an int. */
  private static final long MAX_ELEMENTS = 1 << 30;

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
   * Initializes cuBLAS on a GPU.
   *
   * @param device the GPU
   * @return a cuBLAS context that the caller closes
   * @throws UnavailableException if cuBLAS cannot be loaded; see {@link #availability()}
   */
  public static CudaBlas create(CudaDevice device) {
    DriverAccess.gpu(device).requireOpen();
    return new CudaBlas(device, JCublasApi.load());
  }

  /** {@return whether cuBLAS can be loaded, or one line that says what is missing} */
  public static Availability availability() {
    try {
      JCublasApi.load();
      return Availability.yes();
    } catch (UnavailableException e) {
      return Availability.no(e.getMessage());
    }
  }

  /**
   * Sets how later products of FLOAT32 matrices are computed. The environment variable {@code
   * NVIDIA_TF32_OVERRIDE=0} takes precedence in cuBLAS.
   *
   * @param mode the mode; initially {@link MathMode#FLOAT32}
   * @throws IllegalStateException if this is closed
   */
  public synchronized void setMathMode(MathMode mode) {
    Objects.requireNonNull(mode, "mode");
    requireUsable();
    gpu.makeCurrent();
    api.useTf32(handle, mode == MathMode.TF32);
    mathMode = mode;
  }

  /** {@return how products of FLOAT32 matrices are computed: the mode set last} */
  public synchronized MathMode mathMode() {
    return mathMode;
  }

  /**
   * Sets the scratch memory of later calls on a stream. Without it, all streams of this object
   * share cuBLAS's own. With a workspace for each stream, the same calls give the same bits in each
   * run, whatever runs on other streams, and can be captured into a graph. If all calls use one
   * stream, the bits are the same in each run without a workspace, too.
   *
   * @param stream the stream whose calls use the workspace
   * @param workspace a buffer of any type, of 16 KiB or more, at a multiple of 256 bytes, as every
   *     allocation is; NVIDIA recommends 32 MiB on Hopper and 4 MiB on earlier GPUs. The calls
   *     overwrite its contents. It must stay open as long as calls are enqueued on the stream
   * @throws IllegalArgumentException if the workspace is too small or not aligned, or the workspace
   *     or the stream belongs to another GPU
   * @throws IllegalStateException if this, the stream or the workspace is closed
   */
  public synchronized void setWorkspace(CudaStream stream, CudaBuffer workspace) {
    requireUsable();
    DriverAccess.streamOn(gpu, stream);
    requireOwn("workspace", workspace);
    if (workspace.sizeInBytes() < LEAST_WORKSPACE
        || workspace.address() % WORKSPACE_ALIGNMENT != 0) {
      throw new IllegalArgumentException(
          "workspace is too small or not aligned: bytes=%s, least=%s, address=0x%s, alignment=%s"
              .formatted(
                  workspace.sizeInBytes(),
                  LEAST_WORKSPACE,
                  Long.toHexString(workspace.address()),
                  WORKSPACE_ALIGNMENT));
    }
    workspaces.keySet().removeIf(known -> DriverAccess.stream(known).isClosed());
    workspaces.put(stream, workspace);
    current = null; // so that the next call passes the workspace to cuBLAS
  }

  /**
   * Multiplies two row-major matrices: C (rows by columns) = A (rows by inner) times B (inner by
   * columns).
   *
   * @param stream the stream that runs it
   * @param a rows times inner elements
   * @param b inner times columns elements
   * @param c rows times columns elements, which are overwritten; must not overlap a or b
   * @param rows the rows of A and C, 0 or more
   * @param inner the columns of A and rows of B, 0 or more
   * @param columns the columns of B and C, 0 or more
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
   * Multiplies two row-major matrices (BLAS's gemm): C = alpha op(A) op(B) + beta C, where op(A) is
   * rows by inner, op(B) inner by columns, and C rows by columns.
   *
   * @param stream the stream that runs it
   * @param alpha a factor, rounded to the buffers' type
   * @param a rows times inner elements
   * @param transposeA false if A is rows by inner; true if A is inner by rows, and op(A) is A
   *     transposed
   * @param b inner times columns elements
   * @param transposeB false if B is inner by columns; true if B is columns by inner, and op(B) is B
   *     transposed
   * @param beta a factor, rounded to the buffers' type; 0 overwrites C, whatever it contains, and 1
   *     adds the product to it
   * @param c rows times columns elements; must not overlap a or b
   * @param rows the rows of op(A) and C, 0 or more
   * @param inner the columns of op(A) and rows of op(B), 0 or more
   * @param columns the columns of op(B) and C, 0 or more
   * @throws IllegalArgumentException if a buffer has another number of elements, has another type
   *     than c or is neither FLOAT32 nor FLOAT64, if a buffer or the stream belongs to another GPU,
   *     or if c overlaps a or b
   * @throws IllegalStateException if this, the stream or a buffer is closed
   * @throws DeviceException if cuBLAS reports an error
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
    if (inner == 0) { // the product is zero
      scaleByBeta(stream, beta, c);
      return;
    }
    // cuBLAS takes column-major matrices. To it, a row-major matrix is the transposed one, so this
    // computes C^T = op(B)^T op(A)^T.
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

  private void scaleByBeta(CudaStream stream, double beta, CudaBuffer c) {
    if (beta == 0) {
      gpu.api().fillZero(c.address(), c.sizeInBytes(), DriverAccess.stream(stream).handle());
    } else if (beta != 1) {
      scale(stream, beta, c);
    }
  }

  /**
   * Multiplies each element by a number (BLAS's scal): x = factor x.
   *
   * @param stream the stream that runs it
   * @param factor a factor, rounded to the buffer's type
   * @param x the elements, changed in place
   */
  public synchronized void scale(CudaStream stream, double factor, CudaBuffer x) {
    requireFloating("x", x);
    begin(stream);
    for (long at = 0; at < x.count(); at += MAX_ELEMENTS) {
      int count = (int) Math.min(MAX_ELEMENTS, x.count() - at);
      api.scale(handle, x.type(), count, factor, x.address() + at * x.type().sizeInBytes());
    }
  }

  /**
   * Adds a multiple of a buffer to another (BLAS's axpy): y = factor x + y.
   *
   * @param stream the stream that runs it
   * @param factor a factor, rounded to the buffers' type
   * @param x as many elements as y, of the same type
   * @param y the elements that are changed in place
   */
  public synchronized void addScaled(CudaStream stream, double factor, CudaBuffer x, CudaBuffer y) {
    requireFloating("x", x);
    requireFloating("y", y);
    if (x.type() != y.type() || x.count() != y.count()) {
      throw new IllegalArgumentException("buffers do not match: x=" + x + ", y=" + y);
    }
    begin(stream);
    for (long at = 0; at < x.count(); at += MAX_ELEMENTS) {
      int count = (int) Math.min(MAX_ELEMENTS, x.count() - at);
      long offset = at * x.type().sizeInBytes();
      api.addScaled(handle, x.type(), count, factor, x.address() + offset, y.address() + offset);
    }
  }

  /** Destroys the cuBLAS context, once the work enqueued is done. A second call does nothing. */
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
          "matrix does not fit: %s=%s, expected=%s, rows=%s, columns=%s"
              .formatted(name, m, type, rows, columns));
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
          "buffer belongs to another device: %s=%s, device=%s"
              .formatted(name, buffer.device(), device));
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
