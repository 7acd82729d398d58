package org.gradientsync.cuda;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.locks.LockSupport;
import jcuda.driver.CUcontext;
import jcuda.driver.CUevent;
import jcuda.driver.CUstream;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSyncException;
import org.gradientsync.ReduceOp;
import org.gradientsync.Stream;
import org.gradientsync.spi.AbstractDeviceBuffer;
import org.gradientsync.spi.BackendDevice;
import org.gradientsync.spi.CallInterceptor;
import org.gradientsync.spi.Resources;

/**
 * One GPU. It works in the GPU's primary context, the one that the CUDA runtime and other libraries
 * use, so memory and streams can be shared with them.
 */
public final class CudaDevice implements BackendDevice {
  /** The kind of this device. */
  public static final String KIND = "cuda";

  private static final int POLLS = 1000;
  private static final long CHECK_NANOS = 100_000_000;

  private final CudaApi api;
  private final int ordinal;
  private final CUcontext context;
  private final String name;
  private final String pciAddress;
  private final CudaStream stream;
  private final Set<Long> allocations = ConcurrentHashMap.newKeySet();
  private final Map<Long, List<Lent>> lent = new ConcurrentHashMap<>();
  private final List<DeviceWatch> watches = new CopyOnWriteArrayList<>();
  private final PinnedStaging staging;
  private final Object loading = new Object();
  private volatile ReduceKernel kernel; // loaded when it is asked for: the driver compiles it
  private FiniteCheck finite; // made when it is asked for
  private volatile CallInterceptor interceptor; // or null
  private volatile boolean closed;

  CudaDevice(CudaApi api, int ordinal) {
    this.api = api;
    this.ordinal = ordinal;
    name = api.deviceName(ordinal);
    pciAddress = api.pciAddress(ordinal);
    context = api.retainContext(ordinal);
    api.useContext(context);
    Resources parts = new Resources();
    try {
      stream = parts.add(new CudaStream(this, api.createStream(), true));
      staging = parts.add(new PinnedStaging(this));
    } catch (RuntimeException | Error e) {
      parts.closeAfter(e);
      throw e;
    }
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public String kind() {
    return KIND;
  }

  /**
   * The GPU's number among those that this process sees.
   *
   * @return from 0
   */
  public int ordinal() {
    return ordinal;
  }

  /**
   * Where the GPU sits.
   *
   * @return its PCI address, for example {@code 0000:1b:00.0}
   */
  public String pciAddress() {
    return pciAddress;
  }

  /**
   * The stream of buffers that were allocated without one.
   *
   * @return this device's own stream
   */
  @Override
  public CudaStream stream() {
    return stream;
  }

  /**
   * Makes a stream that does not wait for the default stream.
   *
   * @return a stream that the caller closes
   */
  public CudaStream createStream() {
    requireOpen();
    makeCurrent();
    return new CudaStream(this, api.createStream(), true);
  }

  /**
   * Makes another library's stream usable here.
   *
   * @param handle its CUstream or cudaStream_t
   * @return a stream whose closing leaves the other library's as it is
   * @throws IllegalArgumentException if it belongs to another GPU
   */
  public CudaStream wrapStream(long handle) {
    requireOpen();
    makeCurrent();
    CudaStream wrapped = new CudaStream(this, api.streamOf(handle), false);
    if (!api.contextOf(wrapped.handle()).equals(context)) {
      throw new IllegalArgumentException(
          "stream belongs to another device or context: handle=0x"
              + Long.toHexString(handle)
              + ", device="
              + ordinal);
    }
    return wrapped;
  }

  /**
   * Makes an event.
   *
   * @param timing whether its time will be taken; without, it is cheaper
   * @return an event that the caller closes
   */
  @Override
  public CudaEvent createEvent(boolean timing) {
    requireOpen();
    makeCurrent();
    return new CudaEvent(this, api.createEvent(timing), timing);
  }

  /**
   * Loads kernels of the caller's own.
   *
   * @param ptx what {@code nvcc -ptx} or another compiler made; the driver compiles it for this GPU
   * @return a module that the caller closes
   * @throws CudaException if the driver does not take it; its log is in the message
   */
  public CudaModule loadModule(String ptx) {
    Objects.requireNonNull(ptx, "ptx");
    requireOpen();
    return new CudaModule(this, ptx);
  }

  /**
   * Compiles kernels of the caller's own, where {@link CudaModule#compilerAvailability()} says so.
   *
   * @param cudaSource CUDA C++; kernels are found by their names if they are {@code extern "C"}
   * @param options NVRTC's; without {@code --gpu-architecture} it compiles for this GPU
   * @return a module that the caller closes
   * @throws CudaException if the source is wrong; the compiler's log is in the message
   * @throws org.gradientsync.UnavailableException if NVRTC does not load here
   */
  public CudaModule compile(String cudaSource, String... options) {
    Objects.requireNonNull(cudaSource, "cudaSource");
    requireOpen();
    return loadModule(Nvrtc.compile(cudaSource, Nvrtc.options(api.capability(ordinal), options)));
  }

  /**
   * Starts cuBLAS on this GPU, where {@link CudaBlas#availability()} says so.
   *
   * @return a library context that the caller closes
   * @throws org.gradientsync.UnavailableException if cuBLAS does not load here
   */
  public CudaBlas blas() {
    requireOpen();
    return new CudaBlas(this, JCublasApi.load());
  }

  @Override
  public CudaBuffer allocate(DataType type, long count) {
    return allocate(type, count, stream);
  }

  /**
   * Allocates a buffer that belongs to a stream; its contents are zero.
   *
   * @param type the element type
   * @param count the number of elements, 0 or more
   * @param on a stream of this GPU
   * @return a buffer that the caller closes
   * @throws CudaException if there is not enough memory; the message names the bytes asked and free
   */
  public CudaBuffer allocate(DataType type, long count, CudaStream on) {
    AbstractDeviceBuffer.requireCount(type, count);
    requireOpen();
    requireOwn(on);
    makeCurrent();
    long bytes = count * type.sizeInBytes();
    long address = bytes == 0 ? 0 : allocateFilled(bytes, on);
    return new CudaBuffer(this, type, count, on, address, true);
  }

  private long allocateFilled(long bytes, CudaStream on) {
    CUstream handle = on.handle();
    long address = allocateBytes(bytes);
    try {
      api.fillZero(address, bytes, handle);
    } catch (RuntimeException | Error e) {
      Resources.closeAllAfter(e, () -> api.free(address));
      throw e;
    }
    allocations.add(address);
    return address;
  }

  /**
   * Makes memory that someone else allocated usable as a buffer, in place. Other ranks may map it;
   * so it is to be freed when all of them have closed the buffers that they reduced with it, which
   * a {@code barrier()} after closing makes sure of.
   *
   * @param type the element type
   * @param address where it lies on this GPU
   * @param count the number of elements
   * @param on the stream on which others work on it
   * @return a buffer that the caller closes, which leaves the memory as it is
   * @throws IllegalArgumentException if it is not this GPU's memory, or not aligned to its elements
   */
  public CudaBuffer wrap(DataType type, long address, long count, CudaStream on) {
    AbstractDeviceBuffer.requireCount(type, count);
    requireOpen();
    requireOwn(on);
    makeCurrent();
    int owner = address == 0 ? -1 : api.deviceOf(address);
    if (owner != ordinal || address % type.sizeInBytes() != 0) {
      throw new IllegalArgumentException(
          "not memory of this GPU, or not aligned: address=0x"
              + Long.toHexString(address)
              + ", device="
              + (owner < 0 ? "none" : owner)
              + ", expected="
              + ordinal
              + ", type="
              + type);
    }
    return new CudaBuffer(this, type, count, on, address, false);
  }

  @Override
  public void reduce(DeviceBuffer[] sources, DeviceBuffer target, ReduceOp op) {
    CudaBuffer result = (CudaBuffer) target;
    kernel().launch(result.stream(), sources, result, op);
  }

  /** {@link #reduce} on another stream than the target's. */
  void reduceOn(CudaStream on, DeviceBuffer[] sources, DeviceBuffer target, ReduceOp op) {
    kernel().launch(on, sources, (CudaBuffer) target, op);
  }

  /**
   * Loads what {@link #reduce} and {@link #convert} need, which their first call does otherwise.
   */
  void prepareToReduce() {
    kernel();
  }

  private ReduceKernel kernel() {
    ReduceKernel loaded = kernel;
    if (loaded != null) {
      return loaded;
    }
    synchronized (loading) {
      if (kernel == null) {
        requireOpen();
        makeCurrent();
        kernel = new ReduceKernel(this);
      }
      return kernel;
    }
  }

  @Override
  public void convert(DeviceBuffer source, DeviceBuffer target) {
    AbstractDeviceBuffer.requireConvertible(source, target);
    if (target.count() > 0) {
      kernel().convert((CudaBuffer) source, (CudaBuffer) target);
    }
  }

  @Override
  public synchronized long firstNotFinite(DeviceBuffer buffer) {
    requireOpen();
    if (finite == null) {
      makeCurrent();
      finite = new FiniteCheck(this);
    }
    return finite.first((CudaBuffer) buffer);
  }

  @Override
  public List<String> state() {
    List<String> lines = new ArrayList<>();
    lines.add("");
    lines.add("GPU " + ordinal + ": " + this + (closed ? ", closed" : ""));
    if (!closed) {
      makeCurrent();
      long[] memory = api.memoryInfo();
      lines.add("  memory: free=" + memory[0] + ", total=" + memory[1]);
      lines.add("  this device's stream: " + (api.isDone(stream.handle()) ? "idle" : "busy"));
      lines.add(
          "  driver: CUDA " + api.driverVersion() / 1000 + "." + api.driverVersion() % 1000 / 10);
    }
    return lines;
  }

  @Override
  public void await(DeviceBuffer buffer) {
    ((CudaBuffer) buffer).stream().await();
  }

  @Override
  public CudaStream createStream(boolean sparing) {
    requireOpen();
    makeCurrent();
    return new CudaStream(this, api.createUrgentStream(), true, sparing);
  }

  @Override
  public CudaBuffer on(Stream stream, DeviceBuffer buffer) {
    CudaBuffer own = (CudaBuffer) buffer;
    requireOwn((CudaStream) stream);
    return new CudaBuffer(own, 0, own.count(), (CudaStream) stream);
  }

  @Override
  public CudaStream streamOf(DeviceBuffer buffer) {
    return ((CudaBuffer) buffer).stream();
  }

  @Override
  public void intercept(CallInterceptor newInterceptor) {
    interceptor = newInterceptor;
  }

  @Override
  public CallInterceptor interceptor() {
    return interceptor;
  }

  @Override
  public boolean isClosed() {
    return closed;
  }

  @Override
  public void close() {
    if (closed) {
      return;
    }
    Resources.closeAll(
        this::makeCurrent,
        stream::await,
        staging,
        kernel,
        finite,
        () -> closed = true,
        this::freeAll,
        () -> DeferredFrees.free(api, context),
        stream);
  }

  @Override
  public String toString() {
    return name + " (" + pciAddress + ")";
  }

  CudaApi api() {
    return api;
  }

  CUcontext context() {
    return context;
  }

  void watch(DeviceWatch watch) {
    watches.add(watch);
  }

  void unwatch(DeviceWatch watch) {
    watches.remove(watch);
  }

  /** To be called before a stream is closed. */
  void beforeClose(CudaStream closing) {
    List<AutoCloseable> all = new ArrayList<>();
    watches.forEach(w -> all.add(() -> w.closes(closing)));
    Resources.closeAll(all);
  }

  /**
   * Waits for an event, or for a stream where that is null. Where nobody wants to look around, the
   * driver waits; otherwise this thread asks it again and again, as the driver would.
   */
  void await(CUstream of, CUevent event) {
    makeCurrent();
    if (!watches.isEmpty()) {
      poll(of, event);
    } else {
      awaitByDriver(of, event);
    }
    watches.forEach(DeviceWatch::afterWaiting); // an iterator would be garbage
  }

  /**
   * As {@link #await}, for what is given back then: whatever those who look around throw, it is
   * over when this returns or throws the first of that.
   */
  void awaitEnd(CUstream of, CUevent event) {
    makeCurrent();
    if (watches.isEmpty()) {
      awaitByDriver(of, event);
      return;
    }
    GradientSyncException first = null;
    boolean over = false;
    while (!over) {
      try {
        poll(of, event);
        over = true;
      } catch (CudaException e) {
        throw e; // the GPU does nothing any more
      } catch (GradientSyncException e) {
        first = first == null ? e : first;
      }
    }
    if (first != null) {
      throw first;
    }
  }

  private void awaitByDriver(CUstream of, CUevent event) {
    if (event == null) {
      api.awaitStream(of);
    } else {
      api.awaitEvent(event);
    }
  }

  private void poll(CUstream of, CUevent event) {
    long start = 0;
    long checked = 0;
    for (int polls = 0; !(event == null ? api.isDone(of) : api.isDone(event)); polls++) {
      if (polls < POLLS) {
        Thread.onSpinWait();
        continue;
      }
      long now = System.nanoTime();
      if (start == 0) {
        start = now;
        checked = now;
      }
      if (now - checked > CHECK_NANOS) {
        checked = now;
        for (DeviceWatch watch : watches) {
          watch.whileWaiting(now - start);
        }
      }
      if (now - start > CHECK_NANOS) {
        LockSupport.parkNanos(50_000);
      } else {
        Thread.yield();
      }
    }
  }

  PinnedStaging staging() {
    return staging;
  }

  /** The current context is a thread's own affair in CUDA, so every call begins with this. */
  @Override
  public void makeCurrent() {
    api.useContext(context);
  }

  void requireOwn(CudaStream other) {
    Objects.requireNonNull(other, "stream");
    if (other.device() != this) {
      throw new IllegalArgumentException(
          "stream belongs to another device: stream=" + other.device() + ", device=" + this);
    }
  }

  void free(CudaBuffer buffer, long address) {
    if (allocations.remove(address)) {
      Resources.closeAll(
          this::makeCurrent,
          buffer.stream().isClosed() // freeing waits for what a closed one has left
              ? null
              : () -> api.awaitStream(buffer.stream().handle()),
          () -> free(address));
    }
  }

  private void freeAll() {
    List<AutoCloseable> all = new ArrayList<>();
    allocations.forEach(address -> all.add(() -> free(address)));
    allocations.clear();
    Resources.closeAll(all);
  }

  private void free(long address) {
    List<Lent> terms = lent.remove(address);
    if (terms == null || terms.stream().allMatch(Lent::isBack)) {
      api.free(address);
    } else {
      DeferredFrees.add(api, context, address, () -> terms.stream().allMatch(Lent::isBack));
    }
  }

  /** What tells whether other ranks have given up an allocation of this device that they mapped. */
  interface Lent {
    boolean isBack();
  }

  /**
   * Keeps an allocation of this device, even if its buffer is closed, until others have unmapped
   * it. Memory that is not this device's to free is its owner's affair.
   */
  void lend(long address, Lent terms) {
    if (allocations.contains(address)) {
      lent.compute(
          address,
          (a, before) -> {
            List<Lent> all = before == null ? new ArrayList<>() : before;
            all.removeIf(Lent::isBack);
            all.add(terms);
            return all;
          });
    }
  }

  /** Memory for the library's own use, all zeros; see {@link #giveBack}. */
  long allocateZeroed(long bytes) {
    makeCurrent();
    long address = allocateBytes(bytes);
    try {
      api.fillZero(address, bytes, stream.handle());
      stream.await();
    } catch (RuntimeException | Error e) {
      Resources.closeAllAfter(e, () -> api.free(address));
      throw e;
    }
    return address;
  }

  /** Frees {@link #allocateZeroed}'s memory once others have unmapped it. */
  void giveBack(long address, Lent terms) {
    DeferredFrees.add(api, context, address, terms);
    DeferredFrees.free(api, context);
  }

  private long allocateBytes(long bytes) {
    DeferredFrees.free(api, context);
    try {
      return api.allocate(bytes);
    } catch (CudaException e) {
      if (e.code() != CudaApi.OUT_OF_MEMORY) {
        throw e;
      }
      long[] memory = api.memoryInfo();
      throw new CudaException(
          e.getMessage() + ", free=" + memory[0] + ", total=" + memory[1] + ", device=" + this,
          e.code());
    }
  }

  private void requireOpen() {
    if (closed) {
      throw new IllegalStateException("device is closed: device=" + name);
    }
  }
}
