package org.gradientsync.examples;

import org.gradientsync.DeviceBuffer;
import org.gradientsync.cuda.CudaBuffer;
import org.gradientsync.cuda.CudaDevice;
import org.gradientsync.cuda.CudaEvent;
import org.gradientsync.cuda.compute.CudaKernel;
import org.gradientsync.cuda.compute.CudaModule;
import org.gradientsync.cuda.compute.Grid;
import org.gradientsync.tools.program.RankedProgram;

/** A rank's work in one step of {@link GradientAverage}, with its times. */
interface GradientWork extends AutoCloseable {
  /** Computes the gradient, waits for it, and returns the time in milliseconds. */
  double compute();

  /** Averages, waits for the average, and returns the time in milliseconds. */
  double communicate(Runnable average);

  @Override
  void close();

  /** Returns the work for a buffer, on the CPU or on the buffer's GPU. */
  static GradientWork on(DeviceBuffer buffer, Gradients gradients, int rank) {
    return buffer instanceof CudaBuffer onGpu
        ? new OnGpu(onGpu, rank)
        : new OnHost(buffer, gradients, rank);
  }

  /** Computes in Java, and measures with the CPU's clock. */
  record OnHost(DeviceBuffer buffer, Gradients gradients, int rank) implements GradientWork {
    @Override
    public double compute() {
      long start = System.nanoTime();
      gradients.compute(buffer, rank);
      return RankedProgram.milliseconds(System.nanoTime() - start);
    }

    @Override
    public double communicate(Runnable average) {
      long start = System.nanoTime();
      average.run();
      if (buffer.count() > 0) {
        gradients.read(buffer, buffer.count() - 1); // waits if the device's calls return early
      }
      return RankedProgram.milliseconds(System.nanoTime() - start);
    }

    @Override
    public void close() {
      // nothing to close
    }
  }

  /** Computes with a kernel, and measures with events on the buffer's stream. */
  final class OnGpu implements GradientWork {
    private static final int THREADS = 256;

    private final CudaBuffer gradient;
    private final int rank;
    private final CudaModule module;
    private final CudaKernel kernel;
    private final CudaEvent start;
    private final CudaEvent end;

    OnGpu(CudaBuffer gradient, int rank) {
      this.gradient = gradient;
      this.rank = rank;
      CudaDevice device = gradient.stream().device();
      module = CudaModule.load(device, Kernels.ptx("gradient"));
      kernel = module.kernel("gradient_" + gradient.type());
      start = device.createEvent(true);
      end = device.createEvent(true);
    }

    @Override
    public double compute() {
      return time(
          () ->
              kernel.launch(
                  gradient.stream(),
                  Grid.covering(gradient.count(), THREADS),
                  gradient,
                  rank,
                  gradient.count()));
    }

    @Override
    public double communicate(Runnable average) {
      return time(average);
    }

    private double time(Runnable work) {
      start.record(gradient.stream());
      work.run();
      end.record(gradient.stream());
      end.await();
      return start.millisecondsTo(end);
    }

    @Override
    public void close() {
      end.close();
      start.close();
      module.close();
    }
  }
}
