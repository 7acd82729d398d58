package org.gradientsync.cuda.internal.driver;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Supplier;
import jcuda.jcublas.cublasHandle;
import org.gradientsync.DataType;
import org.gradientsync.UnavailableException;
import org.gradientsync.spi.Resources;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A GPU's cuBLAS for row-major matrices, with a handle for each stream that is in use: calls of one
 * handle on several streams may give other bits in each run. Handles of closed streams serve new
 * ones, because destroying a handle waits for the whole GPU. Calls allocate nothing after the first
 * one on a stream.
 */
public final class GpuBlas implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(GpuBlas.class);

  /** The limit of one call of axpy: cuBLAS counts elements in an int. */
  private static final long MAX_ELEMENTS = 1 << 30;

  private static final AtomicBoolean LOGGED = new AtomicBoolean(); // that cuBLAS is missing

  private final Gpu gpu;
  private final Map<GpuStream, cublasHandle> handles = new IdentityHashMap<>();
  private final Deque<cublasHandle> free = new ArrayDeque<>();
  private Supplier<? extends BlasApi> library = JCublasApi::load;
  private BlasApi api; // or null before the first use, or if it cannot be loaded
  private boolean tried;

  GpuBlas(Gpu gpu) {
    this.gpu = gpu;
  }

  /** For tests: replaces JCublas before the first use. */
  public synchronized void use(Supplier<? extends BlasApi> newLibrary) {
    library = newLibrary;
  }

  /** Whether cuBLAS can be used. The first call loads it, and logs a line if that fails. */
  public synchronized boolean isAvailable() {
    if (!tried) {
      gpu.requireOpen();
      gpu.makeCurrent();
      try {
        api = library.get();
      } catch (UnavailableException e) {
        if (!LOGGED.getAndSet(true)) {
          log.info("the host multiplies matrices for hooks, in place of GPUs: {}", e.getMessage());
        }
      }
      tried = true;
    }
    return api != null;
  }

  /** Names cuBLAS, its version and the GPU: the same where calls give the same bits. */
  public synchronized String name(GpuStream stream) {
    return "cuBLAS " + api.version(handle(stream)) + ", " + gpu.name();
  }

  /**
   * C = alpha op(A) op(B) + beta C, where op(A) is rows by inner, op(B) is inner by columns, and
   * none of them is empty.
   */
  public synchronized void multiply(
      GpuStream stream,
      DataType type,
      double alpha,
      long a,
      boolean transposeA,
      long b,
      boolean transposeB,
      double beta,
      long c,
      int rows,
      int inner,
      int columns) {
    // To cuBLAS a row-major matrix is the transposed one: this is C^T = op(B)^T op(A)^T.
    api.multiply(
        handle(stream),
        type,
        transposeB,
        transposeA,
        columns,
        rows,
        inner,
        alpha,
        b,
        transposeB ? inner : columns,
        a,
        transposeA ? rows : inner,
        beta,
        c,
        columns);
  }

  /** y = factor x + y. */
  public synchronized void addScaled(
      GpuStream stream, DataType type, double factor, long x, long y, long count) {
    for (long at = 0; at < count; at += MAX_ELEMENTS) {
      int some = (int) Math.min(MAX_ELEMENTS, count - at);
      long offset = at * type.sizeInBytes();
      api.addScaled(handle(stream), type, some, factor, x + offset, y + offset);
    }
  }

  private cublasHandle handle(GpuStream stream) {
    gpu.requireOpen();
    gpu.makeCurrent();
    cublasHandle handle = handles.get(stream);
    if (handle == null) {
      collect();
      stream.await(); // creating one may wait for averages, and these for other threads' calls
      handle = free.isEmpty() ? api.create() : free.pop();
      handles.put(stream, handle);
      api.useStream(handle, stream.handle());
    }
    return handle;
  }

  private void collect() {
    handles.forEach(
        (stream, handle) -> {
          if (stream.isClosed()) {
            free.push(handle);
          }
        });
    handles.keySet().removeIf(GpuStream::isClosed);
  }

  /** Destroys the handles. The GPU's context is current. */
  @Override
  public synchronized void close() {
    List<AutoCloseable> all = new ArrayList<>();
    handles.values().forEach(handle -> all.add(() -> api.destroy(handle)));
    free.forEach(handle -> all.add(() -> api.destroy(handle)));
    handles.clear();
    free.clear();
    Resources.closeAll(all);
  }
}
