package org.gradientsync.cuda.internal.driver;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import jcuda.driver.CUcontext;
import jcuda.driver.CUstream;
import org.gradientsync.DeviceException;
import org.gradientsync.spi.Resources;

/**
 * Allocations on one GPU. If other ranks have mapped an allocation, it is freed only after they
 * have unmapped it. {@link #holdFrees} delays all frees. The caller makes the GPU's context
 * current.
 */
public final class GpuMemory {
  private final CudaApi api;
  private final CUcontext context;
  private final String gpu;
  private final Set<Long> buffers = ConcurrentHashMap.newKeySet();
  private final Map<Long, List<BooleanSupplier>> mapped = new ConcurrentHashMap<>();
  private final AtomicInteger holds = new AtomicInteger();
  private volatile boolean freesHeld; // in freeHeld()

  GpuMemory(CudaApi api, CUcontext context, String gpu) {
    this.api = api;
    this.context = context;
    this.gpu = gpu;
  }

  /** Allocates memory. If there is not enough, the exception's message gives the free bytes. */
  long allocate(long bytes) {
    DeferredFrees.free(api, context);
    try {
      return api.allocate(bytes);
    } catch (DeviceException e) {
      if (e.code() != CudaApi.OUT_OF_MEMORY) {
        throw e;
      }
      long[] memory = api.memoryInfo();
      throw new DeviceException(
          e.getMessage() + ", free=" + memory[0] + ", total=" + memory[1] + ", device=" + gpu,
          e.code());
    }
  }

  /** Allocates a buffer's memory, which {@link #freeBuffers} frees if nobody closes the buffer. */
  public long allocateZeroed(long bytes, CUstream stream) {
    long address = allocate(bytes);
    try {
      api.fillZero(address, bytes, stream);
    } catch (RuntimeException | Error e) {
      Resources.closeAllAfter(e, () -> api.free(address));
      throw e;
    }
    buffers.add(address);
    return address;
  }

  /** Frees a buffer's memory after the work on its stream. Does nothing for other memory. */
  public void freeBuffer(long address, GpuStream stream) {
    if (buffers.remove(address)) {
      Resources.closeAll(
          () -> api.useContext(context),
          stream.isClosed() // freeing waits for the work that a closed stream left
              ? null
              : () -> api.awaitStream(stream.handle()),
          () -> free(address));
    }
  }

  /** Keeps a buffer's memory, even after the buffer is closed, until other ranks unmap it. */
  public void keepUntil(long address, BooleanSupplier unmapped) {
    if (buffers.contains(address)) {
      mapped.compute(
          address,
          (a, earlier) -> {
            List<BooleanSupplier> all = earlier == null ? new ArrayList<>() : earlier;
            all.removeIf(BooleanSupplier::getAsBoolean);
            all.add(unmapped);
            return all;
          });
    }
  }

  /** Frees a buffer's memory at once, or once that is allowed and other ranks have unmapped it. */
  private void free(long address) {
    List<BooleanSupplier> before = mapped.remove(address);
    List<BooleanSupplier> all = before == null ? List.of() : before;
    BooleanSupplier mayFree =
        () -> mayFree() && all.stream().allMatch(BooleanSupplier::getAsBoolean);
    if (mayFree.getAsBoolean()) {
      api.free(address);
    } else {
      DeferredFrees.add(api, context, address, mayFree);
    }
  }

  /**
   * From now on, buffers' memory is freed only by {@link #freeHeld}, until {@link #releaseFrees} is
   * called as often as this. For ranks that share this GPU: freeing waits for all kernels that run
   * there, those of other ranks included.
   */
  public void holdFrees() {
    holds.incrementAndGet();
  }

  /** Ends a {@link #holdFrees}. The last one frees what was held. */
  public void releaseFrees() {
    holds.decrementAndGet();
    freeDeferred();
  }

  /** Frees what is held. No other thread of this rank may use the GPU meanwhile. */
  public void freeHeld() {
    freesHeld = true;
    try {
      freeDeferred();
    } finally {
      freesHeld = false;
    }
  }

  private boolean mayFree() {
    return freesHeld || holds.get() == 0;
  }

  /** Frees the library's own memory once other ranks have unmapped it. */
  public void freeOnce(long address, BooleanSupplier unmapped) {
    DeferredFrees.add(api, context, address, unmapped);
    freeDeferred();
  }

  public void freeDeferred() {
    DeferredFrees.free(api, context);
  }

  /** Frees the memory of all buffers that have not been closed. */
  public void freeBuffers() {
    List<AutoCloseable> all = new ArrayList<>();
    buffers.forEach(address -> all.add(() -> free(address)));
    buffers.clear();
    Resources.closeAll(all);
  }
}
