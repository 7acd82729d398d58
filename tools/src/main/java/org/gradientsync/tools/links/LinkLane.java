package org.gradientsync.tools.links;

import static org.gradientsync.tools.links.DriverCall.check;

import jcuda.driver.CUevent;
import jcuda.driver.CUevent_flags;
import jcuda.driver.CUresult;
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
    check(
        JCudaDriver.cuStreamCreate(stream, CUstream_flags.CU_STREAM_NON_BLOCKING),
        "cuStreamCreate",
        gpu.what());
    create(start);
    create(end);
  }

  void enqueue(LinkCopy copy) {
    gpu.makeCurrent();
    copy.step().enqueue(stream);
  }

  void start() {
    record(start);
  }

  void end() {
    record(end);
  }

  /** Makes later work wait for another lane's end. */
  void waitForEndOf(LinkLane other) {
    gpu.makeCurrent();
    check(JCudaDriver.cuStreamWaitEvent(stream, other.end, 0), "cuStreamWaitEvent", gpu.what());
  }

  /** Returns whether the GPU has reached the start. */
  boolean hasStarted() {
    gpu.makeCurrent();
    int result = JCudaDriver.cuEventQuery(start);
    if (result == NOT_READY) {
      return false;
    }
    check(result, "cuEventQuery", gpu.what());
    return true;
  }

  void await() {
    gpu.makeCurrent();
    check(JCudaDriver.cuStreamSynchronize(stream), "cuStreamSynchronize", gpu.what());
  }

  /** Returns the time from start to end. The GPU must have reached both. */
  double seconds() {
    gpu.makeCurrent();
    float[] milliseconds = new float[1];
    check(
        JCudaDriver.cuEventElapsedTime(milliseconds, start, end), "cuEventElapsedTime", gpu.what());
    return milliseconds[0] / 1e3;
  }

  private void create(CUevent event) {
    check(
        JCudaDriver.cuEventCreate(event, CUevent_flags.CU_EVENT_DEFAULT),
        "cuEventCreate",
        gpu.what());
  }

  private void record(CUevent event) {
    gpu.makeCurrent();
    check(JCudaDriver.cuEventRecord(event, stream), "cuEventRecord", gpu.what());
  }

  @Override
  public void close() {
    gpu.makeCurrent();
    int[] results = {
      JCudaDriver.cuEventDestroy(start),
      JCudaDriver.cuEventDestroy(end),
      JCudaDriver.cuStreamDestroy(stream)
    };
    for (int result : results) {
      if (result != CUresult.CUDA_SUCCESS) {
        check(result, "cuEventDestroy or cuStreamDestroy", gpu.what());
      }
    }
  }
}
