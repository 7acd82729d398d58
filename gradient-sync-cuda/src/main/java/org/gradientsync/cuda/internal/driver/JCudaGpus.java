package org.gradientsync.cuda.internal.driver;

import java.nio.charset.StandardCharsets;
import java.util.Locale;
import java.util.function.ToIntFunction;
import jcuda.driver.CUcontext;
import jcuda.driver.CUdevice;
import jcuda.driver.CUdevice_P2PAttribute;
import jcuda.driver.CUdevice_attribute;
import jcuda.driver.CUresult;
import jcuda.driver.CUstream;
import jcuda.driver.JCudaDriver;

/** The driver's calls about GPUs, their links and their contexts, through JCuda. */
abstract class JCudaGpus implements CudaApi {
  static final ReturnCode CODES = new ReturnCode(CUresult::stringFor);

  @Override
  public int driverVersion() {
    int[] version = new int[1];
    CODES.check("cuDriverGetVersion", JCudaDriver::cuDriverGetVersion, version);
    return version[0];
  }

  @Override
  public int deviceCount() {
    int[] count = new int[1];
    CODES.check("cuDeviceGetCount", JCudaDriver::cuDeviceGetCount, count);
    return count[0];
  }

  @Override
  public String deviceName(int ordinal) {
    byte[] name = new byte[256];
    CODES.check(
        "cuDeviceGetName", () -> JCudaDriver.cuDeviceGetName(name, name.length, device(ordinal)));
    int length = 0;
    while (length < name.length && name[length] != 0) {
      length++;
    }
    return new String(name, 0, length, StandardCharsets.UTF_8);
  }

  @Override
  public String pciAddress(int ordinal) {
    String[] id = new String[1];
    CODES.check(
        "cuDeviceGetPCIBusId", () -> JCudaDriver.cuDeviceGetPCIBusId(id, 32, device(ordinal)));
    return id[0].trim().toLowerCase(Locale.ROOT);
  }

  @Override
  public int sms(int ordinal) {
    return attribute(CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, ordinal);
  }

  @Override
  public int capability(int ordinal) {
    return 10 * attribute(CUdevice_attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, ordinal)
        + attribute(CUdevice_attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, ordinal);
  }

  @Override
  public boolean canAccessPeer(int ordinal, int peer) {
    return 0
        != number(
            "cuDeviceCanAccessPeer",
            "peer",
            peer,
            can -> JCudaDriver.cuDeviceCanAccessPeer(can, device(ordinal), device(peer)));
  }

  @Override
  public boolean hasNativeLink(int ordinal, int peer) {
    int atomics = CUdevice_P2PAttribute.CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED;
    return 0
        != number(
            "cuDeviceGetP2PAttribute",
            "peer",
            peer,
            has ->
                JCudaDriver.cuDeviceGetP2PAttribute(has, atomics, device(ordinal), device(peer)));
  }

  @Override
  public CUcontext retainContext(int ordinal) {
    CUcontext context = new CUcontext();
    CODES.check(
        "cuDevicePrimaryCtxRetain",
        "device",
        ordinal,
        () -> JCudaDriver.cuDevicePrimaryCtxRetain(context, device(ordinal)));
    return context;
  }

  @Override
  public void useContext(CUcontext context) {
    CODES.check("cuCtxSetCurrent", JCudaDriver::cuCtxSetCurrent, context);
  }

  @Override
  public void enablePeerAccess(CUcontext peer) {
    int code = CODES.of(() -> JCudaDriver.cuCtxEnablePeerAccess(peer, 0));
    if (code != CUresult.CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED) {
      CODES.check(code, "cuCtxEnablePeerAccess", "");
    }
  }

  @Override
  public long[] memoryInfo() {
    long[] free = new long[1];
    long[] total = new long[1];
    CODES.check("cuMemGetInfo", JCudaDriver::cuMemGetInfo, free, total);
    return new long[] {free[0], total[0]};
  }

  @Override
  public CUcontext contextOf(CUstream stream) {
    CUcontext context = new CUcontext();
    CODES.check("cuStreamGetCtx", JCudaDriver::cuStreamGetCtx, stream, context);
    return context;
  }

  private static int attribute(int attribute, int ordinal) {
    return number(
        "cuDeviceGetAttribute",
        "attribute",
        attribute,
        value -> JCudaDriver.cuDeviceGetAttribute(value, attribute, device(ordinal)));
  }

  /**
   * Gets a number from the driver.
   *
   * @param key for the exception, with its value
   */
  private static int number(String name, String key, int value, ToIntFunction<int[]> call) {
    int[] result = new int[1];
    CODES.check(name, key, value, () -> call.applyAsInt(result));
    return result[0];
  }

  private static CUdevice device(int ordinal) {
    CUdevice device = new CUdevice();
    CODES.check("cuDeviceGet", "device", ordinal, () -> JCudaDriver.cuDeviceGet(device, ordinal));
    return device;
  }
}
