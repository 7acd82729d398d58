package org.gradientsync.tools.links;

import jcuda.driver.CUcontext;
import jcuda.driver.CUdevice;
import jcuda.driver.CUdeviceptr;
import jcuda.driver.CUresult;
import jcuda.driver.JCudaDriver;
import org.gradientsync.DeviceException;

/**
 * A GPU with memory to copy from and to. It does not reset its primary context at the end, because
 * other libraries of the process may use it. If opening fails, the process is to end.
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
    check(JCudaDriver.cuDeviceGet(device, ordinal), "cuDeviceGet");
    check(JCudaDriver.cuDevicePrimaryCtxRetain(context, device), "cuDevicePrimaryCtxRetain");
    makeCurrent();
    source = allocate(bytes);
    target = allocate(bytes);
  }

  private CUdeviceptr allocate(long bytes) {
    CUdeviceptr memory = new CUdeviceptr();
    check(JCudaDriver.cuMemAlloc(memory, bytes), "cuMemAlloc of " + bytes + " bytes");
    return memory;
  }

  /** Returns its primary context. */
  public CUcontext context() {
    return context;
  }

  /** Returns the address of the memory to copy from. */
  public CUdeviceptr source() {
    return source;
  }

  /** Returns the address of the memory to copy to. */
  public CUdeviceptr target() {
    return target;
  }

  /** Makes this GPU's context current on the calling thread, where the driver's calls use it. */
  public void makeCurrent() {
    check(JCudaDriver.cuCtxSetCurrent(context), "cuCtxSetCurrent");
  }

  /** Enables peer access to another GPU's memory, and returns whether there is any. */
  public boolean enableAccess(LinkGpu peer) {
    int[] can = new int[1];
    check(
        JCudaDriver.cuDeviceCanAccessPeer(can, device, peer.device),
        "cuDeviceCanAccessPeer of " + peer);
    if (can[0] == 0) {
      return false;
    }
    makeCurrent();
    int result = JCudaDriver.cuCtxEnablePeerAccess(peer.context, 0);
    if (result == UNSUPPORTED || result == TOO_MANY_PEERS) {
      return false;
    }
    if (result != ALREADY_ENABLED) {
      check(result, "cuCtxEnablePeerAccess to " + peer);
    }
    return true;
  }

  /**
   * Throws if a call to the driver has failed.
   *
   * @param result what it returned
   * @param call its name
   */
  public void check(int result, String call) {
    if (result != CUresult.CUDA_SUCCESS) {
      throw new DeviceException(
          call + " failed: " + CUresult.stringFor(result) + " (" + result + "), gpu=" + ordinal,
          result);
    }
  }

  @Override
  public void close() {
    makeCurrent();
    check(JCudaDriver.cuMemFree(source), "cuMemFree");
    check(JCudaDriver.cuMemFree(target), "cuMemFree");
  }

  /** Returns for example {@code GPU 0}. */
  @Override
  public String toString() {
    return "GPU " + ordinal;
  }
}
