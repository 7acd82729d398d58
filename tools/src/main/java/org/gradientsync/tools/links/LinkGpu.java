package org.gradientsync.tools.links;

import static org.gradientsync.tools.links.DriverCall.check;

import jcuda.driver.CUcontext;
import jcuda.driver.CUdevice;
import jcuda.driver.CUdeviceptr;
import jcuda.driver.CUresult;
import jcuda.driver.JCudaDriver;

/**
 * A GPU with memory to copy from and to. It does not reset its primary context at the end, because
 * other libraries of the process may use it.
 */
public final class LinkGpu implements AutoCloseable {
  // CUDA error codes.
  private static final int UNSUPPORTED = 217;
  private static final int ALREADY_ENABLED = 704;
  private static final int TOO_MANY_PEERS = 711;

  private final int ordinal;
  private final CUdevice device = new CUdevice();
  private final CUcontext context = new CUcontext();
  private final CUdeviceptr source;
  private final CUdeviceptr target;

  /**
   * Opens a GPU. {@code CudaGpu.visible()} must have loaded JCuda's natives.
   *
   * @param ordinal its number among the GPUs that this process sees
   * @param bytes the size of each of its two buffers
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
   * Returns the GPU's name for users.
   *
   * @return for example {@code GPU 0}
   */
  public String name() {
    return "GPU " + ordinal;
  }

  /**
   * Returns the GPU's primary context.
   *
   * @return the context, retained while this object is open
   */
  public CUcontext context() {
    return context;
  }

  /**
   * Returns the memory to copy from.
   *
   * @return its address
   */
  public CUdeviceptr source() {
    return source;
  }

  /**
   * Returns the memory to copy to.
   *
   * @return its address
   */
  public CUdeviceptr target() {
    return target;
  }

  /** Makes this GPU's context current on the calling thread, where the driver's calls use it. */
  public void makeCurrent() {
    check(JCudaDriver.cuCtxSetCurrent(context), "cuCtxSetCurrent", what());
  }

  /**
   * Enables peer access to another GPU's memory, if possible.
   *
   * @param peer the other GPU
   * @return whether there is peer access
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
   * Returns the GPU's name for error texts.
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
