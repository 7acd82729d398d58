package org.gradientsync.cuda.internal.driver;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import jcuda.Pointer;
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

/** The driver's calls about memory, streams, events, kernels and graphs, through JCuda. */
public final class JCudaApi extends JCudaGpus {
  private static final int LOG_BYTES = 16 << 10;
  private static final int NOT_CUDA_MEMORY = 1; // CUDA_ERROR_INVALID_VALUE

  /** Receives a number from the driver in calls that must not allocate. */
  private final ThreadLocal<int[]> number = ThreadLocal.withInitial(() -> new int[1]);

  /** A copy that is enqueued on a stream. */
  private interface Copy<A, B> {
    int make(A target, B source, long bytes, CUstream stream);
  }

  /** Loads JCuda's natives and initializes the driver. Called by {@link CudaLibrary}. */
  JCudaApi() {
    CODES.check("cuInit", () -> JCudaDriver.cuInit(0));
  }

  @Override
  public long allocate(long bytes) {
    Address address = new Address();
    CODES.check("cuMemAlloc", "bytes", bytes, () -> JCudaDriver.cuMemAlloc(address, bytes));
    return address.value();
  }

  @Override
  public void free(long address) {
    CODES.check("cuMemFree", JCudaDriver::cuMemFree, pointer(address));
  }

  @Override
  public int deviceOf(long address) {
    int[] ordinal = new int[1];
    int code =
        CODES.of(
            () ->
                JCudaDriver.cuPointerGetAttribute(
                    Pointer.to(ordinal),
                    CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                    pointer(address)));
    if (code == NOT_CUDA_MEMORY) {
      return -1;
    }
    CODES.check(code, "cuPointerGetAttribute", "");
    int[] type = new int[1];
    attribute(Pointer.to(type), CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address);
    return type[0] == 2 ? ordinal[0] : -1; // CU_MEMORYTYPE_DEVICE
  }

  @Override
  public long allocationId(long address) {
    long[] id = new long[1];
    attribute(Pointer.to(id), CUpointer_attribute.CU_POINTER_ATTRIBUTE_BUFFER_ID, address);
    return id[0];
  }

  private void attribute(Pointer result, int attribute, long address) {
    CODES.check(
        "cuPointerGetAttribute",
        () -> JCudaDriver.cuPointerGetAttribute(result, attribute, pointer(address)));
  }

  @Override
  public long allocationOf(long address) {
    Address base = new Address();
    long[] size = new long[1];
    CODES.check(
        "cuMemGetAddressRange",
        () -> JCudaDriver.cuMemGetAddressRange(base, size, pointer(address)));
    return base.value();
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
  public void fillZero(long address, long bytes, CUstream stream) {
    copy(
        "cuMemsetD8Async", JCudaDriver::cuMemsetD8Async, pointer(address), (byte) 0, bytes, stream);
  }

  @Override
  public void copyToDevice(CUdeviceptr device, Pointer host, long bytes, CUstream stream) {
    copy("cuMemcpyHtoDAsync", JCudaDriver::cuMemcpyHtoDAsync, device, host, bytes, stream);
  }

  @Override
  public void copy(CUdeviceptr target, CUdeviceptr source, long bytes, CUstream stream) {
    copy("cuMemcpyDtoDAsync", JCudaDriver::cuMemcpyDtoDAsync, target, source, bytes, stream);
  }

  @Override
  public void copyToHost(Pointer host, CUdeviceptr device, long bytes, CUstream stream) {
    copy("cuMemcpyDtoHAsync", JCudaDriver::cuMemcpyDtoHAsync, host, device, bytes, stream);
  }

  private static <A, B> void copy(
      String name, Copy<A, B> copy, A target, B source, long bytes, CUstream stream) {
    int code;
    try {
      code = copy.make(target, source, bytes, stream);
    } catch (jcuda.CudaException e) {
      code = CODES.of(e);
    }
    CODES.check(code, name, "bytes", bytes);
  }

  @Override
  public void pageLock(ByteBuffer memory) {
    int flags = JCudaDriver.CU_MEMHOSTREGISTER_PORTABLE | JCudaDriver.CU_MEMHOSTREGISTER_DEVICEMAP;
    CODES.check(
        "cuMemHostRegister",
        "bytes",
        memory.capacity(),
        () -> JCudaDriver.cuMemHostRegister(Pointer.to(memory), memory.capacity(), flags));
  }

  @Override
  public void pageUnlock(ByteBuffer memory) {
    CODES.check("cuMemHostUnregister", JCudaDriver::cuMemHostUnregister, Pointer.to(memory));
  }

  @Override
  public long deviceAddress(ByteBuffer pageLocked) {
    Address address = new Address();
    CODES.check(
        "cuMemHostGetDevicePointer",
        () -> JCudaDriver.cuMemHostGetDevicePointer(address, Pointer.to(pageLocked), 0));
    return address.value();
  }

  @Override
  public byte[] exportMemory(long address) {
    CUipcMemHandle handle = new CUipcMemHandle();
    CODES.check("cuIpcGetMemHandle", JCudaDriver::cuIpcGetMemHandle, handle, pointer(address));
    return JCudaHandles.bytes(handle).clone();
  }

  @Override
  public long importMemory(byte[] bytes) {
    CUipcMemHandle handle = new CUipcMemHandle();
    System.arraycopy(bytes, 0, JCudaHandles.bytes(handle), 0, HANDLE_BYTES);
    Address address = new Address();
    CODES.check(
        "cuIpcOpenMemHandle",
        () ->
            JCudaDriver.cuIpcOpenMemHandle(
                address, handle, CUipcMem_flags.CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    return address.value();
  }

  @Override
  public void closeImport(long address) {
    CODES.check("cuIpcCloseMemHandle", JCudaDriver::cuIpcCloseMemHandle, pointer(address));
  }

  @Override
  public CUstream createStream() {
    CUstream stream = new CUstream();
    CODES.check(
        "cuStreamCreate",
        () -> JCudaDriver.cuStreamCreate(stream, CUstream_flags.CU_STREAM_NON_BLOCKING));
    return stream;
  }

  @Override
  public CUstream createUrgentStream() {
    CUstream stream = new CUstream();
    int[] least = new int[1];
    int[] most = new int[1];
    CODES.check(
        "cuCtxGetStreamPriorityRange", JCudaDriver::cuCtxGetStreamPriorityRange, least, most);
    CODES.check(
        "cuStreamCreateWithPriority",
        () ->
            JCudaDriver.cuStreamCreateWithPriority(
                stream, CUstream_flags.CU_STREAM_NON_BLOCKING, most[0]));
    return stream;
  }

  @Override
  public void destroyStream(CUstream stream) {
    CODES.check("cuStreamDestroy", JCudaDriver::cuStreamDestroy, stream);
  }

  @Override
  public void awaitStream(CUstream stream) {
    CODES.check("cuStreamSynchronize", JCudaDriver::cuStreamSynchronize, stream);
  }

  @Override
  public boolean isDone(CUstream stream) {
    return isDone("cuStreamQuery", JCudaDriver::cuStreamQuery, stream);
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
  public void streamWaitsFor(CUstream stream, CUevent event) {
    CODES.check(
        "cuStreamWaitEvent",
        (waits, recorded) -> JCudaDriver.cuStreamWaitEvent(waits, recorded, 0),
        stream,
        event);
  }

  @Override
  public CUevent createEvent(boolean timing) {
    CUevent event = new CUevent();
    int flags = timing ? CUevent_flags.CU_EVENT_DEFAULT : CUevent_flags.CU_EVENT_DISABLE_TIMING;
    CODES.check("cuEventCreate", () -> JCudaDriver.cuEventCreate(event, flags));
    return event;
  }

  @Override
  public void destroyEvent(CUevent event) {
    CODES.check("cuEventDestroy", JCudaDriver::cuEventDestroy, event);
  }

  @Override
  public void record(CUevent event, CUstream stream) {
    CODES.check("cuEventRecord", JCudaDriver::cuEventRecord, event, stream);
  }

  @Override
  public void awaitEvent(CUevent event) {
    CODES.check("cuEventSynchronize", JCudaDriver::cuEventSynchronize, event);
  }

  @Override
  public boolean isDone(CUevent event) {
    return isDone("cuEventQuery", JCudaDriver::cuEventQuery, event);
  }

  private static <A> boolean isDone(String name, ReturnCode.Call1<A> query, A of) {
    int code = CODES.of(query, of);
    if (code != NOT_READY) {
      CODES.check(code, name, "");
    }
    return code != NOT_READY;
  }

  @Override
  public float milliseconds(CUevent start, CUevent end) {
    float[] milliseconds = new float[1];
    CODES.check(
        "cuEventElapsedTime", () -> JCudaDriver.cuEventElapsedTime(milliseconds, start, end));
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
    int code = CODES.of(() -> JCudaDriver.cuModuleLoadDataJIT(module, data, options));
    if (code != CUresult.CUDA_SUCCESS) {
      throw CODES.failed(
          code,
          "cuModuleLoadDataEx",
          detail + ", log=" + options.getString(CUjit_option.CU_JIT_ERROR_LOG_BUFFER));
    }
    return module;
  }

  @Override
  public void unloadModule(CUmodule module) {
    CODES.check("cuModuleUnload", JCudaDriver::cuModuleUnload, module);
  }

  @Override
  public CUfunction function(CUmodule module, String name) {
    CUfunction function = new CUfunction();
    CODES.check(
        "cuModuleGetFunction",
        "name",
        name,
        () -> JCudaDriver.cuModuleGetFunction(function, module, name));
    return function;
  }

  @Override
  public int blocksPerSm(CUfunction function, int threads) {
    int[] blocks = new int[1];
    CODES.check(
        "cuOccupancyMaxActiveBlocksPerMultiprocessor",
        () ->
            JCudaDriver.cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, threads, 0));
    return blocks[0];
  }

  @Override
  public void launch(
      CUfunction function,
      int[] grid,
      int[] block,
      int sharedBytes,
      CUstream stream,
      Pointer arguments) {
    int code;
    try {
      code =
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
              null);
    } catch (jcuda.CudaException e) {
      code = CODES.of(e);
    }
    CODES.check(code, "cuLaunchKernel", "");
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
  public void beginCapture(CUstream stream) {
    int mode = CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    CODES.check("cuStreamBeginCapture", () -> JCudaDriver.cuStreamBeginCapture(stream, mode));
  }

  @Override
  public CUgraph endCapture(CUstream stream) {
    CUgraph graph = new CUgraph();
    CODES.check("cuStreamEndCapture", JCudaDriver::cuStreamEndCapture, stream, graph);
    return graph;
  }

  @Override
  public boolean isCapturing(CUstream stream) {
    int[] status = number.get();
    CODES.check("cuStreamIsCapturing", JCudaDriver::cuStreamIsCapturing, stream, status);
    return status[0] != CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_NONE;
  }

  @Override
  public int captureMode(int mode) {
    int[] exchanged = {mode};
    CODES.check(
        "cuThreadExchangeStreamCaptureMode",
        JCudaDriver::cuThreadExchangeStreamCaptureMode,
        exchanged);
    return exchanged[0];
  }

  @Override
  public long nodes(CUgraph graph) {
    long[] count = new long[1];
    CODES.check("cuGraphGetNodes", () -> JCudaDriver.cuGraphGetNodes(graph, null, count));
    return count[0];
  }

  @Override
  public void destroyGraph(CUgraph graph) {
    CODES.check("cuGraphDestroy", JCudaDriver::cuGraphDestroy, graph);
  }

  @Override
  public CUgraphExec instantiate(CUgraph graph) {
    CUgraphExec executable = new CUgraphExec();
    CODES.check("cuGraphInstantiate", () -> JCudaDriver.cuGraphInstantiate(executable, graph, 0));
    return executable;
  }

  @Override
  public void launch(CUgraphExec graph, CUstream stream) {
    CODES.check("cuGraphLaunch", JCudaDriver::cuGraphLaunch, graph, stream);
  }

  @Override
  public void destroyGraph(CUgraphExec graph) {
    CODES.check("cuGraphExecDestroy", JCudaDriver::cuGraphExecDestroy, graph);
  }

  /** A device pointer whose number can be read: JCuda shows it only to subclasses. */
  private static final class Address extends CUdeviceptr {
    long value() {
      return getNativePointer() + getByteOffset();
    }
  }
}
