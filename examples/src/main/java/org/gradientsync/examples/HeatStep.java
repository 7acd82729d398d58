package org.gradientsync.examples;

import java.nio.DoubleBuffer;
import org.gradientsync.Device;
import org.gradientsync.cuda.CudaBuffer;
import org.gradientsync.cuda.CudaDevice;
import org.gradientsync.cuda.compute.CudaKernel;
import org.gradientsync.cuda.compute.CudaModule;
import org.gradientsync.cuda.compute.Grid;

/** Computes a step of a piece whose ghost cells are set, on the piece's device. */
interface HeatStep extends AutoCloseable {
  /** The share of the difference to its neighbors that a cell takes over in a step. */
  double DIFFUSIVITY = 0.25;

  /** Computes the cells of the next step, without its ghost cells. */
  void compute(HeatPiece now, HeatPiece next);

  @Override
  void close();

  /** Returns the computation for a device. */
  static HeatStep on(Device device) {
    return device instanceof CudaDevice gpu ? new OnGpu(gpu) : new OnHost();
  }

  /** Returns a cell's next value. */
  static double spread(double left, double own, double right) {
    return own + DIFFUSIVITY * (left - 2 * own + right);
  }

  /** Computes in Java, in place. */
  final class OnHost implements HeatStep {
    @Override
    public void compute(HeatPiece now, HeatPiece next) {
      DoubleBuffer from = now.all().hostMemory().asDoubleBuffer();
      DoubleBuffer to = next.all().hostMemory().asDoubleBuffer();
      for (int i = 1; i < from.limit() - 1; i++) {
        to.put(i, spread(from.get(i - 1), from.get(i), from.get(i + 1)));
      }
    }

    @Override
    public void close() {
      // nothing to close
    }
  }

  /** Enqueues a kernel on the stream that also orders the exchanges. */
  final class OnGpu implements HeatStep {
    private static final int THREADS = 256;

    private final CudaDevice gpu;
    private final CudaModule module;
    private final CudaKernel kernel;

    OnGpu(CudaDevice gpu) {
      this.gpu = gpu;
      module = CudaModule.load(gpu, Kernels.ptx("heat"));
      kernel = module.kernel("spread_heat");
    }

    @Override
    public void compute(HeatPiece now, HeatPiece next) {
      long count = now.cells().count();
      kernel.launch(
          gpu.stream(),
          Grid.covering(count, THREADS),
          (CudaBuffer) now.all(),
          (CudaBuffer) next.all(),
          count);
    }

    @Override
    public void close() {
      module.close();
    }
  }
}
