package org.gradientsync.tools.links;

import jcuda.driver.CUevent;
import jcuda.driver.CUevent_flags;
import jcuda.driver.CUstream;
import jcuda.driver.CUstream_flags;
import jcuda.driver.JCudaDriver;

/** A stream of one GPU that measures the time between two points in it. */
final class LinkLane implements AutoCloseable {
  private static final int NOT_READY = 600; // CUDA_ERROR_NOT_READY

  private final LinkGpu gpu;
  private final CUstream stream = new CUstream();
  private final CUevent start = new CUevent();
  private final CUevent end = new CUevent();

  LinkLane(LinkGpu gpu) {
    this.gpu = gpu;
    gpu.makeCurrent();
    gpu.check(
        JCudaDriver.cuStreamCreate(stream, CUstream_flags.CU_STREAM_NON_BLOCKING),
        "cuStreamCreate");
    for (CUevent event : new CUevent[] {start, end}) {
      gpu.check(JCudaDriver.cuEventCreate(event, CUevent_flags.CU_EVENT_DEFAULT), "cuEventCreate");
    }
  }

  void enqueue(LinkCopy copy) {
    gpu.makeCurrent();
    gpu.check(copy.step().applyAsInt(stream), "copy from " + copy.from() + " to " + copy.to());
  }

  void start() {
    record(start);
  }

  void end() {
    record(end);
  }

  private void record(CUevent event) {
    gpu.makeCurrent();
    gpu.check(JCudaDriver.cuEventRecord(event, stream), "cuEventRecord");
  }

  /** Makes later work wait for another lane's end. */
  void waitForEndOf(LinkLane other) {
    gpu.makeCurrent();
    gpu.check(JCudaDriver.cuStreamWaitEvent(stream, other.end, 0), "cuStreamWaitEvent");
  }

  /** Returns whether the GPU has reached the start. */
  boolean hasStarted() {
    gpu.makeCurrent();
    int result = JCudaDriver.cuEventQuery(start);
    if (result != NOT_READY) {
      gpu.check(result, "cuEventQuery");
    }
    return result != NOT_READY;
  }

  void await() {
    gpu.makeCurrent();
    gpu.check(JCudaDriver.cuStreamSynchronize(stream), "cuStreamSynchronize");
  }

  /** Returns the time from start to end. The GPU must have reached both. */
  double seconds() {
    gpu.makeCurrent();
    float[] milliseconds = new float[1];
    gpu.check(JCudaDriver.cuEventElapsedTime(milliseconds, start, end), "cuEventElapsedTime");
    return milliseconds[0] / 1e3;
  }

  @Override
  public void close() {
    gpu.makeCurrent();
    gpu.check(JCudaDriver.cuEventDestroy(start), "cuEventDestroy");
    gpu.check(JCudaDriver.cuEventDestroy(end), "cuEventDestroy");
    gpu.check(JCudaDriver.cuStreamDestroy(stream), "cuStreamDestroy");
  }
}
