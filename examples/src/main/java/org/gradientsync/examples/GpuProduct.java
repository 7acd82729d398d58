package org.gradientsync.examples;

import java.nio.FloatBuffer;
import org.gradientsync.DataType;
import org.gradientsync.cuda.CudaBuffer;
import org.gradientsync.cuda.CudaDevice;
import org.gradientsync.cuda.CudaEvent;
import org.gradientsync.cuda.CudaStream;
import org.gradientsync.cuda.compute.CudaBlas;
import org.gradientsync.cuda.compute.CudaModule;
import org.gradientsync.cuda.compute.Grid;

/** Multiplies matrices on a GPU, with cuBLAS or with the kernel in multiply.cu. */
final class GpuProduct {
  private static final int TILE = 16;

  private final CudaDevice gpu;
  private final boolean blas;

  GpuProduct(CudaDevice gpu, boolean blas) {
    this.gpu = gpu;
    this.blas = blas;
  }

  /**
   * Computes some rows of C = A times B from the same rows of A. Returns the time of the product
   * alone on the GPU, in milliseconds.
   */
  double multiply(float[] a, float[] b, float[] c, int rows, int columns) {
    int count = rows * columns;
    try (CudaBuffer deviceA = gpu.allocate(DataType.FLOAT32, count);
        CudaBuffer deviceB = gpu.allocate(DataType.FLOAT32, b.length);
        CudaBuffer deviceC = gpu.allocate(DataType.FLOAT32, count)) {
      deviceA.copyFrom(FloatBuffer.wrap(a, 0, count));
      deviceB.copyFrom(b);
      double time =
          blas
              ? byBlas(deviceA, deviceB, deviceC, rows, columns)
              : byKernel(deviceA, deviceB, deviceC, rows, columns);
      deviceC.copyTo(FloatBuffer.wrap(c, 0, count));
      return time;
    }
  }

  private double byBlas(CudaBuffer a, CudaBuffer b, CudaBuffer c, int rows, int columns) {
    try (CudaBlas cublas = CudaBlas.create(gpu)) {
      return time(() -> cublas.multiply(gpu.stream(), a, b, c, rows, columns, columns));
    }
  }

  private double byKernel(CudaBuffer a, CudaBuffer b, CudaBuffer c, int rows, int columns) {
    Grid grid = Grid.of(tiles(columns), tiles(Math.max(1, rows)), TILE, TILE);
    try (CudaModule module = CudaModule.load(gpu, Kernels.ptx("multiply"))) {
      return time(
          () -> module.kernel("multiply").launch(gpu.stream(), grid, a, b, c, rows, columns));
    }
  }

  private static int tiles(int elements) {
    return (elements + TILE - 1) / TILE;
  }

  private double time(Runnable work) {
    CudaStream stream = gpu.stream();
    try (CudaEvent start = gpu.createEvent(true);
        CudaEvent end = gpu.createEvent(true)) {
      start.record(stream);
      work.run();
      end.record(stream);
      end.await();
      return start.millisecondsTo(end);
    }
  }
}
