package org.gradientsync.cuda.internal.driver;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import jcuda.driver.CUcontext;
import org.gradientsync.cuda.CudaException;
import org.gradientsync.spi.Resources;

/**
 * Allocations on one GPU, whose context its user makes current. Other ranks may have one mapped; it
 * is freed when they have unmapped it. {@link #holdFrees} holds back what is freed.
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

  /** Allocates; the message of a failure for lack of memory names what is free. */
  public long allocate(long bytes) {
    DeferredFrees.free(api, context);
    try {
      return api.allocate(bytes);
    } catch (CudaException e) {
      if (e.code() != CudaApi.OUT_OF_MEMORY) {
        throw e;
      }
      long[] memory = api.memoryInfo();
      throw new CudaException(
          e.getMessage() + ", free=" + memory[0] + ", total=" + memory[1] + ", device=" + gpu,
          e.code());
    }
  }

  /** Notes a user's allocation, which is freed with the device if the user does not close it. */
  public void addBuffer(long address) {
    buffers.add(address);
  }

  /** Forgets a user's allocation, to be {@linkplain #free freed} by the caller if it was known. */
  public boolean removeBuffer(long address) {
    return buffers.remove(address);
  }

  /** Keeps a user's allocation, even if its buffer is closed, until others have unmapped it. */
  public void keepUntil(long address, BooleanSupplier unmapped) {
    if (buffers.contains(address)) {
      mapped.compute(
          address,
          (a, before) -> {
            List<BooleanSupplier> all = before == null ? new ArrayList<>() : before;
            all.removeIf(BooleanSupplier::getAsBoolean);
            all.add(unmapped);
            return all;
          });
    }
  }

  /** Frees an allocation of a user's, at once or when that is safe and others have unmapped it. */
  public void free(long address) {
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
   * From now on allocations of users are freed only by {@link #freeHeld}, until {@link
   * #releaseFrees} is called as often as this. For ranks that share this GPU: freeing waits for all
   * kernels that run there, of other ranks, too.
   */
  public void holdFrees() {
    holds.incrementAndGet();
  }

  /** Ends a {@link #holdFrees}. After the last one, frees what was held back. */
  public void releaseFrees() {
    holds.decrementAndGet();
    freeDeferred();
  }

  /** Frees what is held back. No other thread of this rank may use the GPU meanwhile. */
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

  /** Frees an allocation of the library's own once others have unmapped it. */
  public void freeOnce(long address, BooleanSupplier unmapped) {
    DeferredFrees.add(api, context, address, unmapped);
    freeDeferred();
  }

  public void freeDeferred() {
    DeferredFrees.free(api, context);
  }

  /** Frees what users have not closed. */
  public void freeBuffers() {
    List<AutoCloseable> all = new ArrayList<>();
    buffers.forEach(address -> all.add(() -> free(address)));
    buffers.clear();
    Resources.closeAll(all);
  }
}
