package org.gradientsync.cuda;

import jcuda.driver.CUstream;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.ReduceOp;
import org.gradientsync.core.backend.HostProducts;
import org.gradientsync.cuda.internal.driver.CopyKernel;
import org.gradientsync.cuda.internal.driver.Gpu;
import org.gradientsync.cuda.internal.driver.NormKernel;
import org.gradientsync.cuda.internal.driver.ReduceKernel;
import org.gradientsync.spi.BackendDevice;

/**
 * What a GPU computes, on the stream of the buffer that gets the result: see {@link BackendDevice}.
 */
final class CudaArithmetic {
  private final Gpu gpu;

  CudaArithmetic(Gpu gpu) {
    this.gpu = gpu;
  }

  void reduce(DeviceBuffer[] sources, DeviceBuffer target, ReduceOp op) {
    CudaBuffer result = (CudaBuffer) target;
    ReduceKernel kernel = gpu.kernels().reduce();
    synchronized (kernel) {
      setSources(kernel, sources);
      kernel.reduce(
          sources.length, result.address(), result.count(), result.type(), op, streamFor(result));
    }
  }

  void accumulate(DeviceBuffer running, DeviceBuffer[] sources, DeviceBuffer target, ReduceOp op) {
    CudaBuffer result = (CudaBuffer) target;
    ReduceKernel kernel = gpu.kernels().reduce();
    synchronized (kernel) {
      setSources(kernel, sources);
      kernel.accumulate(
          addressOrNull(running),
          sources.length,
          result.address(),
          result.count(),
          sources[0].type(),
          op,
          streamFor(result));
    }
  }

  void finish(
      DeviceBuffer running, DeviceBuffer[] sources, DeviceBuffer target, ReduceOp op, int ranks) {
    CudaBuffer result = (CudaBuffer) target;
    ReduceKernel kernel = gpu.kernels().reduce();
    synchronized (kernel) {
      setSources(kernel, sources);
      kernel.finish(
          addressOrNull(running),
          sources.length,
          ranks,
          result.address(),
          result.count(),
          result.type(),
          op,
          streamFor(result));
    }
  }

  private static void setSources(ReduceKernel kernel, DeviceBuffer[] sources) {
    ReduceKernel.requireRanks(sources.length);
    for (int rank = 0; rank < sources.length; rank++) {
      kernel.source(rank, ((CudaBuffer) sources[rank]).address());
    }
  }

  private static long addressOrNull(DeviceBuffer buffer) {
    return buffer == null ? 0 : ((CudaBuffer) buffer).address();
  }

  /** The buffer's stream, with this device current, as a launch on it needs. */
  CUstream streamFor(CudaBuffer buffer) {
    gpu.makeCurrent();
    return buffer.stream().driver().handle();
  }

  void copyAll(DeviceBuffer[] sources, DeviceBuffer[] targets) {
    if (sources.length == 0) {
      return;
    }
    CopyKernel kernel = gpu.kernels().copy();
    synchronized (kernel) {
      kernel.begin(streamFor((CudaBuffer) targets[0]));
      for (int i = 0; i < sources.length; i++) {
        CudaBuffer to = (CudaBuffer) targets[i];
        kernel.copy(((CudaBuffer) sources[i]).address(), to.address(), to.sizeInBytes());
      }
      kernel.end();
    }
  }

  void convert(DeviceBuffer source, DeviceBuffer target) {
    BackendDevice.requireConvertible(source, target);
    if (target.count() > 0) {
      CudaBuffer from = (CudaBuffer) source;
      CudaBuffer to = (CudaBuffer) target;
      gpu.kernels()
          .reduce()
          .convert(from.address(), from.type(), to.address(), to.type(), to.count(), streamFor(to));
    }
  }

  long firstNotFinite(DeviceBuffer buffer) {
    gpu.requireOpen();
    gpu.makeCurrent();
    CudaBuffer own = (CudaBuffer) buffer;
    return gpu.kernels()
        .finite()
        .first(own.type(), own.address(), own.count(), own.stream().driver());
  }

  double sumOfSquares(DeviceBuffer buffer) {
    CudaBuffer own = (CudaBuffer) buffer;
    return norm(own).sumOfSquares(own.type(), own.address(), own.count(), own.stream().driver());
  }

  void scale(DeviceBuffer buffer, double factor) {
    CudaBuffer own = (CudaBuffer) buffer;
    norm(own).scale(own.type(), own.address(), own.count(), factor, own.stream().driver());
  }

  void multiply(
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
    BackendDevice.requireMatrices(a, b, c, rows, inner, columns);
    if (!gpu.blas().isAvailable() || c.count() == 0 || inner == 0) {
      HostProducts.multiply(alpha, a, transposeA, b, transposeB, beta, c, rows, inner, columns);
      return;
    }
    CudaBuffer own = (CudaBuffer) c;
    gpu.blas()
        .multiply(
            own.stream().driver(),
            own.type(),
            alpha,
            ((CudaBuffer) a).address(),
            transposeA,
            ((CudaBuffer) b).address(),
            transposeB,
            beta,
            own.address(),
            rows,
            inner,
            columns);
  }

  void addScaled(double factor, DeviceBuffer x, DeviceBuffer y) {
    BackendDevice.requireMatrix("x", x, y.count(), y.type());
    BackendDevice.requireMatrix("y", y, y.count(), y.type());
    if (!gpu.blas().isAvailable()) {
      HostProducts.addScaled(factor, x, y);
      return;
    }
    CudaBuffer own = (CudaBuffer) y;
    gpu.blas()
        .addScaled(
            own.stream().driver(),
            own.type(),
            factor,
            ((CudaBuffer) x).address(),
            own.address(),
            own.count());
  }

  void sumRows(DeviceBuffer source, DeviceBuffer table, int width, DeviceBuffer target) {
    BackendDevice.requireRows(source, table, width, target);
    if (target.count() > 0) {
      CudaBuffer to = (CudaBuffer) target;
      long rows = source.count() / width;
      gpu.kernels()
          .reduce()
          .sumRows(
              ((CudaBuffer) source).address(),
              ((CudaBuffer) table).address(),
              rows,
              width,
              to.address(),
              to.count(),
              streamFor(to));
    }
  }

  String products(DeviceBuffer buffer) {
    return gpu.blas().isAvailable()
        ? gpu.blas().name(((CudaBuffer) buffer).stream().driver())
        : HostProducts.NAME;
  }

  private NormKernel norm(CudaBuffer buffer) {
    gpu.requireOpen();
    gpu.makeCurrent();
    if (!gpu.kernels().hasNorm()) {
      buffer.stream().await(); // loading may wait for averages, and these for other threads' calls
    }
    return gpu.kernels().norm();
  }
}
