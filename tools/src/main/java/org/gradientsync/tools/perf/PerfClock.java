package org.gradientsync.tools.perf;

import org.gradientsync.DeviceBuffer;
import org.gradientsync.cuda.CudaBuffer;
import org.gradientsync.cuda.CudaDevice;
import org.gradientsync.cuda.CudaEvent;
import org.gradientsync.cuda.CudaStream;

/** Measures how long work on a buffer takes on the buffer's device. */
interface PerfClock extends AutoCloseable {
  /** Runs the work, waits until it is done, and returns the microseconds. */
  double microseconds(Runnable work);

  /** Waits until all work on the buffer is done. */
  void await();

  @Override
  void close();

  static PerfClock of(DeviceBuffer buffer) {
    return buffer instanceof CudaBuffer onGpu ? new OnGpu(onGpu.stream()) : new OnHost();
  }

  /** Uses the CPU's clock. In host memory a call has done its work when it returns. */
  final class OnHost implements PerfClock {
    @Override
    public double microseconds(Runnable work) {
      long start = System.nanoTime();
      work.run();
      return (System.nanoTime() - start) / 1e3;
    }

    @Override
    public void await() {
      // nothing to wait for
    }

    @Override
    public void close() {
      // nothing to close
    }
  }

  /** Uses the GPU's clock, read in the buffer's stream before and behind the work. */
  final class OnGpu implements PerfClock {
    private final CudaStream stream;
    private final CudaEvent start;
    private final CudaEvent end;

    OnGpu(CudaStream stream) {
      this.stream = stream;
      CudaDevice device = stream.device();
      start = device.createEvent(true);
      end = device.createEvent(true);
    }

    @Override
    public double microseconds(Runnable work) {
      start.record(stream);
      work.run();
      end.record(stream);
      end.await();
      return start.millisecondsTo(end) * 1e3;
    }

    @Override
    public void await() {
      stream.await();
    }

    @Override
    public void close() {
      end.close();
      start.close();
    }
  }
}
