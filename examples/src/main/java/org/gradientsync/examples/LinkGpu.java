package org.gradientsync.examples;

import static org.gradientsync.examples.DriverCall.check;

import jcuda.driver.CUcontext;
import jcuda.driver.CUdevice;
import jcuda.driver.CUdeviceptr;
import jcuda.driver.CUresult;
import jcuda.driver.JCudaDriver;

/**
 * One GPU with memory to copy from and to. Its primary context is left as it is at the end: other
 * libraries of the process may use it.
 */
public final class LinkGpu implements AutoCloseable {
  // The driver's error codes.
  private static final int UNSUPPORTED = 217;
  private static final int ALREADY_ENABLED = 704;
  private static final int TOO_MANY_PEERS = 711;

  private final int ordinal;
  private final CUdevice device = new CUdevice();
  private final CUcontext context = new CUcontext();
  private final CUdeviceptr source;
  private final CUdeviceptr target;

  /**
   * Opens a GPU; JCuda's natives have been loaded by {@code CudaGpu.visible()}.
   *
   * @param ordinal which one of those that this process sees
   * @param bytes of each of its two pieces of memory
   */
  public LinkGpu(int ordinal, long bytes) {
    this.ordinal = ordinal;
    check(JCudaDriver.cuDeviceGet(device, ordinal), "cuDeviceGet", what());
    check(
        JCudaDriver.cuDevicePrimaryCtxRetain(context, device), "cuDevicePrimaryCtxRetain", what());
    makeCurrent();
    source = allocate(bytes);
    try {
      target = allocate(bytes);
    } catch (RuntimeException e) {
      JCudaDriver.cuMemFree(source);
      throw e;
    }
  }

  /**
   * How people call it.
   *
   * @return for example {@code GPU 0}
   */
  public String name() {
    return "GPU " + ordinal;
  }

  /**
   * Its primary context.
   *
   * @return retained for as long as this object is open
   */
  public CUcontext context() {
    return context;
  }

  /**
   * The memory to copy from.
   *
   * @return where it begins
   */
  public CUdeviceptr source() {
    return source;
  }

  /**
   * The memory to copy to.
   *
   * @return where it begins
   */
  public CUdeviceptr target() {
    return target;
  }

  /** The driver's calls go to the calling thread's current context. */
  public void makeCurrent() {
    check(JCudaDriver.cuCtxSetCurrent(context), "cuCtxSetCurrent", what());
  }

  /**
   * Opens the way straight to another GPU's memory, where there is one.
   *
   * @param peer the other GPU
   * @return whether there is one
   */
  public boolean enableAccess(LinkGpu peer) {
    int[] can = new int[1];
    check(
        JCudaDriver.cuDeviceCanAccessPeer(can, device, peer.device),
        "cuDeviceCanAccessPeer",
        what() + ", peer=" + peer.ordinal);
    if (can[0] == 0) {
      return false;
    }
    makeCurrent();
    int result = JCudaDriver.cuCtxEnablePeerAccess(peer.context, 0);
    if (result == UNSUPPORTED || result == TOO_MANY_PEERS) {
      return false;
    }
    if (result != ALREADY_ENABLED) {
      check(result, "cuCtxEnablePeerAccess", what() + ", peer=" + peer.ordinal);
    }
    return true;
  }

  /**
   * How errors call it.
   *
   * @return for example {@code gpu=0}
   */
  public String what() {
    return "gpu=" + ordinal;
  }

  private CUdeviceptr allocate(long bytes) {
    CUdeviceptr memory = new CUdeviceptr();
    check(JCudaDriver.cuMemAlloc(memory, bytes), "cuMemAlloc", what() + ", bytes=" + bytes);
    return memory;
  }

  @Override
  public void close() {
    makeCurrent();
    int first = JCudaDriver.cuMemFree(source);
    int second = JCudaDriver.cuMemFree(target);
    check(first != CUresult.CUDA_SUCCESS ? first : second, "cuMemFree", what());
  }
}
