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
import org.gradientsync.cuda.CudaException;

/**
 * The CUDA driver as this module uses it: the one door to it, behind which JCuda stands, or a mock
 * where a failure has to be provoked. Addresses are plain numbers. Every call throws {@link
 * CudaException} with the driver's error code where the driver reports one.
 */
public interface CudaApi {
  /** Error code: not enough device memory. */
  int OUT_OF_MEMORY = 2;

  /** Error code: no device. */
  int NO_DEVICE = 100;

  /** Error code: still running. */
  int NOT_READY = 600;

  /** The CUDA version of the driver, as 1000 times major plus 10 times minor. */
  int driverVersion();

  int deviceCount();

  String deviceName(int ordinal);

  /** For example {@code 0000:1b:00.0}. */
  String pciAddress(int ordinal);

  int sms(int ordinal);

  /** The compute capability, as 10 times major plus minor. */
  int capability(int ordinal);

  /**
   * Makes the device's primary context, which it shares with the CUDA runtime and with other
   * libraries.
   */
  CUcontext retainContext(int ordinal);

  /** Makes a context current for the calling thread. */
  void useContext(CUcontext context);

  long allocate(long bytes);

  void free(long address);

  /** Free and total bytes of the current context's device. */
  long[] memoryInfo();

  /** The ordinal of the device that an address belongs to, or -1 if it is no device memory. */
  int deviceOf(long address);

  void fillZero(long address, long bytes, CUstream stream);

  /** An address as the copying calls take it. */
  CUdeviceptr pointer(long address);

  /** A place in a direct buffer as the copying calls take it. */
  Pointer pointer(ByteBuffer memory, int offset);

  /** Copies from page-locked memory; enqueued. Allocates nothing. */
  void copyToDevice(CUdeviceptr device, Pointer host, long bytes, CUstream stream);

  /** Copies to page-locked memory; enqueued. Allocates nothing. */
  void copyToHost(Pointer host, CUdeviceptr device, long bytes, CUstream stream);

  void pageLock(ByteBuffer memory);

  void pageUnlock(ByteBuffer memory);

  CUstream createStream();

  /** A stream whose kernels are placed before those of the others that wait for room. */
  CUstream createUrgentStream();

  void destroyStream(CUstream stream);

  void awaitStream(CUstream stream);

  /** Whether all that was enqueued has run. Allocates nothing. */
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

  /** Loads PTX; what the driver's compiler says of it is in the exception's message. */
  CUmodule loadModule(String ptx);

  /**
   * Loads a module of this library's.
   *
   * @param name for messages
   * @param image machine code, or PTX
   */
  CUmodule loadImage(String name, byte[] image);

  void unloadModule(CUmodule module);

  CUfunction function(CUmodule module, String name);

  /**
   * Launches a kernel.
   *
   * @param arguments pointers to the arguments, as {@link #arguments} makes them
   */
  void launch(
      CUfunction function,
      int[] grid,
      int[] block,
      int sharedBytes,
      CUstream stream,
      Pointer arguments);

  /**
   * Pointers to a kernel's arguments, to be used for any number of launches.
   *
   * @param memory a direct buffer in which the arguments lie
   * @param offsets where each one lies
   */
  Pointer arguments(ByteBuffer memory, int[] offsets);

  /** A stream that another library made, by its handle. */
  CUstream streamOf(long handle);

  /** From now on a stream's work is noted and not run. Other threads' calls do it no harm. */
  void beginCapture(CUstream stream);

  /** What was noted since {@link #beginCapture}, on the same thread. */
  CUgraph endCapture(CUstream stream);

  /** Whether a capture was begun and not ended, even if it has failed. Allocates nothing. */
  boolean isCapturing(CUstream stream);

  /**
   * While this thread captures, CUDA refuses it what allocates, on whichever streams. Sets whether
   * that is so.
   *
   * @param mode {@link #ANY_CALL}, or what an earlier call has returned
   * @return the mode before
   */
  int captureMode(int mode);

  /** The number of steps in a graph. */
  long nodes(CUgraph graph);

  void destroyGraph(CUgraph graph);

  /** A graph ready to be launched; the graph itself is not needed any more. */
  CUgraphExec instantiate(CUgraph graph);

  /** Enqueues a graph. Allocates nothing. */
  void launch(CUgraphExec graph, CUstream stream);

  /** What is enqueued of it still runs. */
  void destroyGraph(CUgraphExec graph);

  /** Where the allocation begins that an address lies in. */
  long allocationOf(long address);

  /** A number that no other allocation of this process ever has. */
  long allocationId(long address);

  /** Whether kernels on one GPU may use another's memory. */
  boolean canAccessPeer(int ordinal, int peer);

  /** Whether the link between two GPUs is NVLink, which carries atomic operations, and not PCIe. */
  boolean hasNativeLink(int ordinal, int peer);

  /** Lets kernels of the current context use the memory of another GPU's context. */
  void enablePeerAccess(CUcontext peer);

  /** What another process needs to map an allocation: {@value #HANDLE_BYTES} bytes. */
  byte[] exportMemory(long address);

  /** Maps another process's allocation; returns where it begins here. */
  long importMemory(byte[] handle);

  /** Unmaps what {@link #importMemory} mapped. */
  void closeImport(long address);

  /** For {@link #captureMode}: CU_STREAM_CAPTURE_MODE_RELAXED. */
  int ANY_CALL = 2;

  /** Size of what {@link #exportMemory} gives. */
  int HANDLE_BYTES = 64;

  /** Where kernels find page-locked memory. */
  long deviceAddress(ByteBuffer pageLocked);

  /** How many blocks of a kernel fit on an SM at once. */
  int blocksPerSm(CUfunction function, int threads);
}
