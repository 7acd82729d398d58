package org.gradientsync.cuda.internal.driver;

import java.nio.ByteBuffer;
import jcuda.Pointer;
import jcuda.driver.CUcontext;
import jcuda.driver.CUdeviceptr;
import jcuda.driver.CUevent;
import jcuda.driver.CUfunction;
import jcuda.driver.CUgraph;
import jcuda.driver.CUgraphExec;
import jcuda.driver.CUmodule;
import jcuda.driver.CUstream;
import org.gradientsync.DeviceException;

/**
 * The calls of the CUDA driver that this module uses, implemented with JCuda or, to simulate
 * failures, by a mock. Addresses are plain numbers. Every call throws a {@link DeviceException}
 * with the driver's code if the driver reports an error.
 */
public interface CudaApi {
  /** CUDA_ERROR_OUT_OF_MEMORY. */
  int OUT_OF_MEMORY = 2;

  /** CUDA_ERROR_NO_DEVICE. */
  int NO_DEVICE = 100;

  /** CUDA_ERROR_NOT_READY: work is still running. */
  int NOT_READY = 600;

  /** The CUDA version of the driver: 1000 times major plus 10 times minor. */
  int driverVersion();

  int deviceCount();

  String deviceName(int ordinal);

  /** For example {@code 0000:1b:00.0}. */
  String pciAddress(int ordinal);

  int sms(int ordinal);

  /** The compute capability: 10 times major plus minor. */
  int capability(int ordinal);

  /** Retains the device's primary context, which the CUDA runtime and other libraries also use. */
  CUcontext retainContext(int ordinal);

  /** Makes a context current for the calling thread. */
  void useContext(CUcontext context);

  long allocate(long bytes);

  void free(long address);

  /** The free and the total bytes of the current context's device. */
  long[] memoryInfo();

  /** The ordinal of the device that an address belongs to; -1 if it is not device memory. */
  int deviceOf(long address);

  void fillZero(long address, long bytes, CUstream stream);

  /** An address, for the calls that copy. */
  CUdeviceptr pointer(long address);

  /** A position in a direct buffer, for the calls that copy. */
  Pointer pointer(ByteBuffer memory, int offset);

  /** Enqueues a copy from page-locked memory. Allocates nothing. */
  void copyToDevice(CUdeviceptr device, Pointer host, long bytes, CUstream stream);

  /** Enqueues a copy within the GPU's memory. Allocates nothing. */
  void copy(CUdeviceptr target, CUdeviceptr source, long bytes, CUstream stream);

  /** Enqueues a copy to page-locked memory. Allocates nothing. */
  void copyToHost(Pointer host, CUdeviceptr device, long bytes, CUstream stream);

  void pageLock(ByteBuffer memory);

  void pageUnlock(ByteBuffer memory);

  CUstream createStream();

  /** Creates a stream of the highest priority. */
  CUstream createUrgentStream();

  void destroyStream(CUstream stream);

  void awaitStream(CUstream stream);

  /** Whether all work enqueued is done. Allocates nothing. */
  boolean isDone(CUstream stream);

  /** The context that a stream belongs to. */
  CUcontext contextOf(CUstream stream);

  void streamWaitsFor(CUstream stream, CUevent event);

  CUevent createEvent(boolean timing);

  void destroyEvent(CUevent event);

  void record(CUevent event, CUstream stream);

  void awaitEvent(CUevent event);

  boolean isDone(CUevent event);

  float milliseconds(CUevent start, CUevent end);

  /** Loads PTX. If that fails, the exception's message contains the compiler's log. */
  CUmodule loadModule(String ptx);

  /**
   * Loads one of this library's own modules.
   *
   * @param name the image's name, for messages
   * @param image machine code or PTX
   */
  CUmodule loadImage(String name, byte[] image);

  void unloadModule(CUmodule module);

  CUfunction function(CUmodule module, String name);

  /**
   * Launches a kernel.
   *
   * @param arguments the pointers that {@link #arguments} returns
   */
  void launch(
      CUfunction function,
      int[] grid,
      int[] block,
      int sharedBytes,
      CUstream stream,
      Pointer arguments);

  /**
   * Pointers to a kernel's arguments, for any number of launches.
   *
   * @param memory a direct buffer that contains the arguments
   * @param offsets the offset of each argument, in bytes
   */
  Pointer arguments(ByteBuffer memory, int[] offsets);

  /** Another library's stream with this handle. */
  CUstream streamOf(long handle);

  /** The handle of a stream, for other libraries. Allocates nothing. */
  long handleOf(CUstream stream);

  /** Begins to capture a stream's work. Calls of other threads do not make the capture fail. */
  void beginCapture(CUstream stream);

  /** Ends the capture that {@link #beginCapture} began on the same thread. */
  CUgraph endCapture(CUstream stream);

  /** Whether a stream is being captured, even if the capture has failed. Allocates nothing. */
  boolean isCapturing(CUstream stream);

  /**
   * Sets which calls this thread may make during a capture. By default CUDA rejects some, such as
   * allocations, even if they do not concern the captured stream.
   *
   * @param mode {@link #ANY_CALL}, or a mode that an earlier call returned
   * @return the previous mode
   */
  int captureMode(int mode);

  /** The number of nodes in a graph. */
  long nodes(CUgraph graph);

  void destroyGraph(CUgraph graph);

  /** Creates an executable graph. The captured graph is not needed any more. */
  CUgraphExec instantiate(CUgraph graph);

  /** Enqueues a graph. Allocates nothing. */
  void launch(CUgraphExec graph, CUstream stream);

  /** Destroys an executable graph. Launches enqueued earlier still run. */
  void destroyGraph(CUgraphExec graph);

  /** The start address of the allocation that contains an address. */
  long allocationOf(long address);

  /** An allocation's ID, which the process never uses again. */
  long allocationId(long address);

  /** Whether kernels on one GPU can access another's memory. */
  boolean canAccessPeer(int ordinal, int peer);

  /** Whether the link between two GPUs supports atomic operations: NVLink does, PCIe does not. */
  boolean hasNativeLink(int ordinal, int peer);

  /** Lets kernels of the current context access the memory of another GPU's context. */
  void enablePeerAccess(CUcontext peer);

  /** Returns a handle with which other processes map an allocation. */
  byte[] exportMemory(long address);

  /** Maps another process's allocation. Returns its start address in this process. */
  long importMemory(byte[] handle);

  /** Unmaps what {@link #importMemory} mapped. */
  void closeImport(long address);

  /** For {@link #captureMode}: CU_STREAM_CAPTURE_MODE_RELAXED. */
  int ANY_CALL = 2;

  /** The size of the handles of {@link #exportMemory}. */
  int HANDLE_BYTES = 64;

  /** The address at which kernels access page-locked memory. */
  long deviceAddress(ByteBuffer pageLocked);

  /** The number of blocks of a kernel that fit on an SM at once. */
  int blocksPerSm(CUfunction function, int threads);
}
