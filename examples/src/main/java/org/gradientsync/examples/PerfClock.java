package org.gradientsync.examples;

import org.gradientsync.DeviceBuffer;
import org.gradientsync.cuda.CudaBuffer;
import org.gradientsync.cuda.CudaDevice;
import org.gradientsync.cuda.CudaEvent;
import org.gradientsync.cuda.CudaStream;

/** How long work on a buffer takes where the buffer is. */
interface PerfClock extends AutoCloseable {
  /** Does the work, and returns after how many microseconds it was done. */
  double microseconds(Runnable work);

  /** Waits until all work on the buffer is done. */
  void await();

  @Override
  void close();

  static PerfClock of(DeviceBuffer buffer) {
    return buffer instanceof CudaBuffer onGpu ? new OnGpu(onGpu.stream()) : new OnHost();
  }

  /** The clock of the CPU: on the host a call has done its work when it returns. */
  final class OnHost implements PerfClock {
    @Override
    public double microseconds(Runnable work) {
      long start = System.nanoTime();
      work.run();
      return (System.nanoTime() - start) / 1e3;
    }

    @Override
    public void await() {
      // nothing is left to be done
    }

    @Override
    public void close() {
      // has nothing of its own
    }
  }

  /** The clock of the GPU, read in the buffer's stream before and behind the work. */
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
