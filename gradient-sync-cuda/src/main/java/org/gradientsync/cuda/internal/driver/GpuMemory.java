package org.gradientsync.cuda.internal.driver;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BooleanSupplier;
import jcuda.driver.CUcontext;
import jcuda.driver.CUstream;
import org.gradientsync.DeviceException;
import org.gradientsync.spi.Resources;

/**
 * Allocations on one GPU, some of which are freed later than they are closed: see {@link
 * DeferredFrees}. The caller makes the GPU's context current.
 */
public final class GpuMemory {
  private final CudaApi api;
  private final CUcontext context;
  private final DeferredFrees frees;
  private final String gpu;
  private final Set<Long> buffers = ConcurrentHashMap.newKeySet();
  private final Map<Long, List<BooleanSupplier>> mapped = new ConcurrentHashMap<>();

  GpuMemory(CudaApi api, CUcontext context, String gpu) {
    this.api = api;
    this.context = context;
    this.gpu = gpu;
    frees = DeferredFrees.of(api, context);
  }

  public DeferredFrees frees() {
    return frees;
  }

  /** Allocates memory. If there is not enough, the exception's message gives the free bytes. */
  long allocate(long bytes) {
    frees.free();
    return allocate(bytes, false);
  }

  private long allocate(long bytes, boolean retry) {
    try {
      return api.allocate(bytes);
    } catch (DeviceException e) {
      if (e.code() != CudaApi.OUT_OF_MEMORY) {
        throw e;
      }
      if (!retry && frees.await()) {
        return allocate(bytes, true);
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
      Resources.closeAllAfter(e, () -> free(address));
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

  /** Frees memory at once, unless another rank has it mapped or kernels run; then later. */
  public void free(long address) {
    List<BooleanSupplier> mappings = mapped.remove(address);
    frees.free(
        address,
        () -> mappings == null || mappings.stream().allMatch(BooleanSupplier::getAsBoolean));
  }

  /** Frees the library's own memory once other ranks have unmapped it. */
  public void freeOnce(long address, BooleanSupplier unmapped) {
    frees.add(address, unmapped);
    frees.free();
  }

  /** Frees the memory of all buffers that have not been closed. */
  public void freeBuffers() {
    List<AutoCloseable> all = new ArrayList<>();
    buffers.forEach(address -> all.add(() -> free(address)));
    buffers.clear();
    Resources.closeAll(all);
  }
}
