package org.gradientsync.cuda.internal.driver;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Locale;
import java.util.function.IntSupplier;
import jcuda.Pointer;
import jcuda.driver.CUcontext;
import jcuda.driver.CUdevice;
import jcuda.driver.CUdevice_P2PAttribute;
import jcuda.driver.CUdevice_attribute;
import jcuda.driver.CUdeviceptr;
import jcuda.driver.CUevent;
import jcuda.driver.CUevent_flags;
import jcuda.driver.CUfunction;
import jcuda.driver.CUgraph;
import jcuda.driver.CUgraphExec;
import jcuda.driver.CUipcMemHandle;
import jcuda.driver.CUipcMem_flags;
import jcuda.driver.CUjit_option;
import jcuda.driver.CUmodule;
import jcuda.driver.CUpointer_attribute;
import jcuda.driver.CUresult;
import jcuda.driver.CUstream;
import jcuda.driver.CUstreamCaptureMode;
import jcuda.driver.CUstreamCaptureStatus;
import jcuda.driver.CUstream_flags;
import jcuda.driver.JCudaDriver;
import jcuda.driver.JITOptions;
import org.gradientsync.DeviceException;

/**
 * The driver through JCuda. If JCuda throws exceptions, this class turns them into error codes; see
 * {@link ReturnCode}. Frequent calls do that without a lambda, which can be garbage.
 */
public final class JCudaApi implements CudaApi {
  private static final ReturnCode CODES = new ReturnCode(CUresult::stringFor);
  private static final int LOG_BYTES = 16 << 10;
  private static final int NOT_CUDA_MEMORY = 1; // CUDA_ERROR_INVALID_VALUE

  /** Receives a number from the driver in calls that must not allocate. */
  private final ThreadLocal<int[]> number = ThreadLocal.withInitial(() -> new int[1]);

  /** Loads JCuda's natives and initializes the driver. Called by {@link CudaLibrary}. */
  JCudaApi() {
    check(() -> JCudaDriver.cuInit(0), "cuInit");
  }

  @Override
  public int driverVersion() {
    int[] version = new int[1];
    check(() -> JCudaDriver.cuDriverGetVersion(version), "cuDriverGetVersion");
    return version[0];
  }

  @Override
  public int deviceCount() {
    int[] count = new int[1];
    check(() -> JCudaDriver.cuDeviceGetCount(count), "cuDeviceGetCount");
    return count[0];
  }

  @Override
  public String deviceName(int ordinal) {
    byte[] name = new byte[256];
    check(() -> JCudaDriver.cuDeviceGetName(name, name.length, device(ordinal)), "cuDeviceGetName");
    int length = 0;
    while (length < name.length && name[length] != 0) {
      length++;
    }
    return new String(name, 0, length, StandardCharsets.UTF_8);
  }

  @Override
  public String pciAddress(int ordinal) {
    String[] id = new String[1];
    check(() -> JCudaDriver.cuDeviceGetPCIBusId(id, 32, device(ordinal)), "cuDeviceGetPCIBusId");
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
  public CUcontext retainContext(int ordinal) {
    CUcontext context = new CUcontext();
    check(
        () -> JCudaDriver.cuDevicePrimaryCtxRetain(context, device(ordinal)),
        "cuDevicePrimaryCtxRetain",
        "device",
        ordinal);
    return context;
  }

  @Override
  public void useContext(CUcontext context) {
    try {
      check(JCudaDriver.cuCtxSetCurrent(context), "cuCtxSetCurrent");
    } catch (jcuda.CudaException e) {
      throw failed(e, "cuCtxSetCurrent");
    }
  }

  @Override
  public long allocate(long bytes) {
    Address address = new Address();
    check(() -> JCudaDriver.cuMemAlloc(address, bytes), "cuMemAlloc", "bytes", bytes);
    return address.value();
  }

  @Override
  public void free(long address) {
    check(() -> JCudaDriver.cuMemFree(pointer(address)), "cuMemFree");
  }

  @Override
  public long[] memoryInfo() {
    long[] free = new long[1];
    long[] total = new long[1];
    check(() -> JCudaDriver.cuMemGetInfo(free, total), "cuMemGetInfo");
    return new long[] {free[0], total[0]};
  }

  @Override
  public int deviceOf(long address) {
    int[] ordinal = new int[1];
    int result =
        CODES.of(
            () ->
                JCudaDriver.cuPointerGetAttribute(
                    Pointer.to(ordinal),
                    CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                    pointer(address)));
    if (result == NOT_CUDA_MEMORY) {
      return -1;
    }
    check(result, "cuPointerGetAttribute");
    int[] type = new int[1];
    check(
        () ->
            JCudaDriver.cuPointerGetAttribute(
                Pointer.to(type),
                CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                pointer(address)),
        "cuPointerGetAttribute");
    return type[0] == 2 ? ordinal[0] : -1; // CU_MEMORYTYPE_DEVICE
  }

  @Override
  public void fillZero(long address, long bytes, CUstream stream) {
    try {
      check(
          JCudaDriver.cuMemsetD8Async(pointer(address), (byte) 0, bytes, stream),
          "cuMemsetD8Async",
          bytes);
    } catch (jcuda.CudaException e) {
      check(CODES.of(e), "cuMemsetD8Async", bytes);
    }
  }

  @Override
  public CUdeviceptr pointer(long address) {
    return new CUdeviceptr().withByteOffset(address);
  }

  @Override
  public Pointer pointer(ByteBuffer memory, int offset) {
    return Pointer.to(memory).withByteOffset(offset);
  }

  @Override
  public void copyToDevice(CUdeviceptr device, Pointer host, long bytes, CUstream stream) {
    try {
      check(JCudaDriver.cuMemcpyHtoDAsync(device, host, bytes, stream), "cuMemcpyHtoDAsync", bytes);
    } catch (jcuda.CudaException e) {
      check(CODES.of(e), "cuMemcpyHtoDAsync", bytes);
    }
  }

  @Override
  public void copy(CUdeviceptr target, CUdeviceptr source, long bytes, CUstream stream) {
    try {
      check(
          JCudaDriver.cuMemcpyDtoDAsync(target, source, bytes, stream), "cuMemcpyDtoDAsync", bytes);
    } catch (jcuda.CudaException e) {
      check(CODES.of(e), "cuMemcpyDtoDAsync", bytes);
    }
  }

  @Override
  public void copyToHost(Pointer host, CUdeviceptr device, long bytes, CUstream stream) {
    try {
      check(JCudaDriver.cuMemcpyDtoHAsync(host, device, bytes, stream), "cuMemcpyDtoHAsync", bytes);
    } catch (jcuda.CudaException e) {
      check(CODES.of(e), "cuMemcpyDtoHAsync", bytes);
    }
  }

  @Override
  public void pageLock(ByteBuffer memory) {
    check(
        () ->
            JCudaDriver.cuMemHostRegister(
                Pointer.to(memory),
                memory.capacity(),
                JCudaDriver.CU_MEMHOSTREGISTER_PORTABLE | JCudaDriver.CU_MEMHOSTREGISTER_DEVICEMAP),
        "cuMemHostRegister",
        "bytes",
        memory.capacity());
  }

  @Override
  public void pageUnlock(ByteBuffer memory) {
    check(() -> JCudaDriver.cuMemHostUnregister(Pointer.to(memory)), "cuMemHostUnregister");
  }

  @Override
  public CUstream createStream() {
    CUstream stream = new CUstream();
    check(
        () -> JCudaDriver.cuStreamCreate(stream, CUstream_flags.CU_STREAM_NON_BLOCKING),
        "cuStreamCreate");
    return stream;
  }

  @Override
  public CUstream createUrgentStream() {
    CUstream stream = new CUstream();
    int[] leastUrgent = new int[1];
    int[] mostUrgent = new int[1];
    check(
        () -> JCudaDriver.cuCtxGetStreamPriorityRange(leastUrgent, mostUrgent),
        "cuCtxGetStreamPriorityRange");
    check(
        () ->
            JCudaDriver.cuStreamCreateWithPriority(
                stream, CUstream_flags.CU_STREAM_NON_BLOCKING, mostUrgent[0]),
        "cuStreamCreateWithPriority");
    return stream;
  }

  @Override
  public void destroyStream(CUstream stream) {
    check(() -> JCudaDriver.cuStreamDestroy(stream), "cuStreamDestroy");
  }

  @Override
  public void awaitStream(CUstream stream) {
    try {
      check(JCudaDriver.cuStreamSynchronize(stream), "cuStreamSynchronize");
    } catch (jcuda.CudaException e) {
      throw failed(e, "cuStreamSynchronize");
    }
  }

  @Override
  public boolean isDone(CUstream stream) {
    try {
      return isDone(JCudaDriver.cuStreamQuery(stream), "cuStreamQuery");
    } catch (jcuda.CudaException e) {
      return isDone(CODES.of(e), "cuStreamQuery");
    }
  }

  @Override
  public CUcontext contextOf(CUstream stream) {
    CUcontext context = new CUcontext();
    check(() -> JCudaDriver.cuStreamGetCtx(stream, context), "cuStreamGetCtx");
    return context;
  }

  @Override
  public void streamWaitsFor(CUstream stream, CUevent event) {
    try {
      check(JCudaDriver.cuStreamWaitEvent(stream, event, 0), "cuStreamWaitEvent");
    } catch (jcuda.CudaException e) {
      throw failed(e, "cuStreamWaitEvent");
    }
  }

  @Override
  public CUevent createEvent(boolean timing) {
    CUevent event = new CUevent();
    int flags = timing ? CUevent_flags.CU_EVENT_DEFAULT : CUevent_flags.CU_EVENT_DISABLE_TIMING;
    check(() -> JCudaDriver.cuEventCreate(event, flags), "cuEventCreate");
    return event;
  }

  @Override
  public void destroyEvent(CUevent event) {
    check(() -> JCudaDriver.cuEventDestroy(event), "cuEventDestroy");
  }

  @Override
  public void record(CUevent event, CUstream stream) {
    try {
      check(JCudaDriver.cuEventRecord(event, stream), "cuEventRecord");
    } catch (jcuda.CudaException e) {
      throw failed(e, "cuEventRecord");
    }
  }

  @Override
  public void awaitEvent(CUevent event) {
    try {
      check(JCudaDriver.cuEventSynchronize(event), "cuEventSynchronize");
    } catch (jcuda.CudaException e) {
      throw failed(e, "cuEventSynchronize");
    }
  }

  @Override
  public boolean isDone(CUevent event) {
    try {
      return isDone(JCudaDriver.cuEventQuery(event), "cuEventQuery");
    } catch (jcuda.CudaException e) {
      return isDone(CODES.of(e), "cuEventQuery");
    }
  }

  @Override
  public float milliseconds(CUevent start, CUevent end) {
    float[] milliseconds = new float[1];
    check(() -> JCudaDriver.cuEventElapsedTime(milliseconds, start, end), "cuEventElapsedTime");
    return milliseconds[0];
  }

  @Override
  public CUmodule loadModule(String ptx) {
    return load(ptx.getBytes(StandardCharsets.US_ASCII), "");
  }

  @Override
  public CUmodule loadImage(String name, byte[] image) {
    return load(image, ", image=" + name);
  }

  private static CUmodule load(byte[] image, String detail) {
    CUmodule module = new CUmodule();
    JITOptions options = new JITOptions();
    options.putBytes(CUjit_option.CU_JIT_ERROR_LOG_BUFFER, new byte[LOG_BYTES]);
    options.putInt(CUjit_option.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, LOG_BYTES);
    Pointer data = Pointer.to(Arrays.copyOf(image, image.length + 1)); // PTX must end with a zero
    int result = CODES.of(() -> JCudaDriver.cuModuleLoadDataJIT(module, data, options));
    if (result != CUresult.CUDA_SUCCESS) {
      throw failed(
          result,
          "cuModuleLoadDataEx",
          detail + ", log=" + options.getString(CUjit_option.CU_JIT_ERROR_LOG_BUFFER));
    }
    return module;
  }

  @Override
  public void unloadModule(CUmodule module) {
    check(() -> JCudaDriver.cuModuleUnload(module), "cuModuleUnload");
  }

  @Override
  public CUfunction function(CUmodule module, String name) {
    CUfunction function = new CUfunction();
    check(
        () -> JCudaDriver.cuModuleGetFunction(function, module, name),
        "cuModuleGetFunction",
        "name",
        name);
    return function;
  }

  @Override
  public void launch(
      CUfunction function,
      int[] grid,
      int[] block,
      int sharedBytes,
      CUstream stream,
      Pointer arguments) {
    try {
      check(
          JCudaDriver.cuLaunchKernel(
              function,
              grid[0],
              grid[1],
              grid[2],
              block[0],
              block[1],
              block[2],
              sharedBytes,
              stream,
              arguments,
              null),
          "cuLaunchKernel");
    } catch (jcuda.CudaException e) {
      throw failed(e, "cuLaunchKernel");
    }
  }

  @Override
  public Pointer arguments(ByteBuffer memory, int[] offsets) {
    Pointer[] pointers = new Pointer[offsets.length];
    Pointer base = Pointer.to(memory);
    for (int i = 0; i < offsets.length; i++) {
      pointers[i] = base.withByteOffset(offsets[i]);
    }
    return Pointer.to(pointers);
  }

  @Override
  public CUstream streamOf(long handle) {
    return JCudaHandles.streamOf(handle);
  }

  @Override
  public long handleOf(CUstream stream) {
    return JCudaHandles.handleOf(stream);
  }

  @Override
  public void beginCapture(CUstream stream) {
    check(
        () ->
            JCudaDriver.cuStreamBeginCapture(
                stream, CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
        "cuStreamBeginCapture");
  }

  @Override
  public CUgraph endCapture(CUstream stream) {
    CUgraph graph = new CUgraph();
    check(() -> JCudaDriver.cuStreamEndCapture(stream, graph), "cuStreamEndCapture");
    return graph;
  }

  @Override
  public boolean isCapturing(CUstream stream) {
    try {
      int[] status = number.get();
      check(JCudaDriver.cuStreamIsCapturing(stream, status), "cuStreamIsCapturing");
      return status[0] != CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_NONE;
    } catch (jcuda.CudaException e) {
      throw failed(e, "cuStreamIsCapturing");
    }
  }

  @Override
  public int captureMode(int mode) {
    int[] exchanged = {mode};
    check(
        () -> JCudaDriver.cuThreadExchangeStreamCaptureMode(exchanged),
        "cuThreadExchangeStreamCaptureMode");
    return exchanged[0];
  }

  @Override
  public long nodes(CUgraph graph) {
    long[] count = new long[1];
    check(() -> JCudaDriver.cuGraphGetNodes(graph, null, count), "cuGraphGetNodes");
    return count[0];
  }

  @Override
  public void destroyGraph(CUgraph graph) {
    check(() -> JCudaDriver.cuGraphDestroy(graph), "cuGraphDestroy");
  }

  @Override
  public CUgraphExec instantiate(CUgraph graph) {
    CUgraphExec executable = new CUgraphExec();
    check(() -> JCudaDriver.cuGraphInstantiate(executable, graph, 0), "cuGraphInstantiate");
    return executable;
  }

  @Override
  public void launch(CUgraphExec graph, CUstream stream) {
    try {
      check(JCudaDriver.cuGraphLaunch(graph, stream), "cuGraphLaunch");
    } catch (jcuda.CudaException e) {
      throw failed(e, "cuGraphLaunch");
    }
  }

  @Override
  public void destroyGraph(CUgraphExec graph) {
    check(() -> JCudaDriver.cuGraphExecDestroy(graph), "cuGraphExecDestroy");
  }

  @Override
  public long allocationOf(long address) {
    Address base = new Address();
    long[] size = new long[1];
    check(
        () -> JCudaDriver.cuMemGetAddressRange(base, size, pointer(address)),
        "cuMemGetAddressRange");
    return base.value();
  }

  @Override
  public long allocationId(long address) {
    long[] id = new long[1];
    check(
        () ->
            JCudaDriver.cuPointerGetAttribute(
                Pointer.to(id),
                CUpointer_attribute.CU_POINTER_ATTRIBUTE_BUFFER_ID,
                pointer(address)),
        "cuPointerGetAttribute");
    return id[0];
  }

  @Override
  public boolean canAccessPeer(int ordinal, int peer) {
    int[] can = new int[1];
    check(
        () -> JCudaDriver.cuDeviceCanAccessPeer(can, device(ordinal), device(peer)),
        "cuDeviceCanAccessPeer",
        "peer",
        peer);
    return can[0] != 0;
  }

  @Override
  public boolean hasNativeLink(int ordinal, int peer) {
    int[] value = new int[1];
    check(
        () ->
            JCudaDriver.cuDeviceGetP2PAttribute(
                value,
                CUdevice_P2PAttribute.CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED,
                device(ordinal),
                device(peer)),
        "cuDeviceGetP2PAttribute",
        "peer",
        peer);
    return value[0] != 0;
  }

  @Override
  public void enablePeerAccess(CUcontext peer) {
    int result = CODES.of(() -> JCudaDriver.cuCtxEnablePeerAccess(peer, 0));
    if (result != CUresult.CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED) {
      check(result, "cuCtxEnablePeerAccess");
    }
  }

  @Override
  public byte[] exportMemory(long address) {
    CUipcMemHandle handle = new CUipcMemHandle();
    check(() -> JCudaDriver.cuIpcGetMemHandle(handle, pointer(address)), "cuIpcGetMemHandle");
    return JCudaHandles.bytes(handle).clone();
  }

  @Override
  public long importMemory(byte[] bytes) {
    CUipcMemHandle handle = new CUipcMemHandle();
    System.arraycopy(bytes, 0, JCudaHandles.bytes(handle), 0, HANDLE_BYTES);
    Address address = new Address();
    check(
        () ->
            JCudaDriver.cuIpcOpenMemHandle(
                address, handle, CUipcMem_flags.CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
        "cuIpcOpenMemHandle");
    return address.value();
  }

  @Override
  public void closeImport(long address) {
    check(() -> JCudaDriver.cuIpcCloseMemHandle(pointer(address)), "cuIpcCloseMemHandle");
  }

  @Override
  public long deviceAddress(ByteBuffer pageLocked) {
    Address address = new Address();
    check(
        () -> JCudaDriver.cuMemHostGetDevicePointer(address, Pointer.to(pageLocked), 0),
        "cuMemHostGetDevicePointer");
    return address.value();
  }

  @Override
  public int blocksPerSm(CUfunction function, int threads) {
    int[] blocks = new int[1];
    check(
        () -> JCudaDriver.cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, threads, 0),
        "cuOccupancyMaxActiveBlocksPerMultiprocessor");
    return blocks[0];
  }

  private static int attribute(int attribute, int ordinal) {
    int[] value = new int[1];
    check(
        () -> JCudaDriver.cuDeviceGetAttribute(value, attribute, device(ordinal)),
        "cuDeviceGetAttribute",
        "attribute",
        attribute);
    return value[0];
  }

  private static CUdevice device(int ordinal) {
    CUdevice device = new CUdevice();
    check(() -> JCudaDriver.cuDeviceGet(device, ordinal), "cuDeviceGet", "device", ordinal);
    return device;
  }

  private static boolean isDone(int result, String call) {
    if (result != NOT_READY) {
      check(result, call);
    }
    return result != NOT_READY;
  }

  private static void check(IntSupplier action, String call) {
    check(CODES.of(action), call);
  }

  private static void check(IntSupplier action, String call, String key, Object value) {
    int result = CODES.of(action);
    if (result != CUresult.CUDA_SUCCESS) {
      throw failed(result, call, ", " + key + "=" + value);
    }
  }

  private static void check(int result, String call, long bytes) {
    if (result != CUresult.CUDA_SUCCESS) {
      throw failed(result, call, ", bytes=" + bytes);
    }
  }

  private static void check(int result, String call) {
    if (result != CUresult.CUDA_SUCCESS) {
      throw failed(result, call, "");
    }
  }

  private static DeviceException failed(jcuda.CudaException thrown, String call) {
    return failed(CODES.of(thrown), call, "");
  }

  private static DeviceException failed(int result, String call, String detail) {
    return new DeviceException(
        call + " failed: " + CUresult.stringFor(result) + " (" + result + ")" + detail, result);
  }

  /** A device pointer whose number can be read: JCuda shows it only to subclasses. */
  private static final class Address extends CUdeviceptr {
    long value() {
      return getNativePointer() + getByteOffset();
    }
  }
}
