package org.gradientsync.cuda.internal.driver;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BooleanSupplier;
import jcuda.driver.CUcontext;
import org.gradientsync.DeviceException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Memory of one GPU that is closed, but that other ranks still have mapped, or that the {@link
 * KernelGate} does not let free yet. Later allocations, and closing the device, free what they can.
 * So closing a buffer does not wait for other ranks.
 */
public final class DeferredFrees {
  private static final Logger log = LoggerFactory.getLogger(DeferredFrees.class);
  private static final Map<KernelGate, DeferredFrees> all = new ConcurrentHashMap<>();

  private final CudaApi api;
  private final KernelGate gate;
  private final List<Deferred> deferred = new ArrayList<>();

  private record Deferred(long address, BooleanSupplier unmapped) {}

  private DeferredFrees(CudaApi api, KernelGate gate) {
    this.api = api;
    this.gate = gate;
  }

  /** Those of a GPU, for all devices of this process that use it. */
  public static DeferredFrees of(CudaApi api, CUcontext context) {
    return all.computeIfAbsent(KernelGate.of(api, context), gate -> new DeferredFrees(api, gate));
  }

  /** Frees memory at once if that is possible, otherwise later. The context is current. */
  void free(long address, BooleanSupplier unmapped) {
    if (!unmapped.getAsBoolean() || !gate.tryRun(() -> api.free(address))) {
      add(address, unmapped);
    }
  }

  /** Adds memory to free later. */
  synchronized void add(long address, BooleanSupplier unmapped) {
    deferred.add(new Deferred(address, unmapped));
  }

  /** Frees what can be freed without waiting for other ranks. The context is current. */
  public void free() {
    if (!isEmpty()) {
      gate.tryRun(this::freeUnmapped);
    }
  }

  /** Frees what other ranks have unmapped, and may wait. Returns whether there was anything. */
  boolean await() {
    boolean any = !isEmpty();
    if (any) {
      gate.run(this::freeUnmapped);
    }
    return any;
  }

  private synchronized boolean isEmpty() {
    return deferred.isEmpty();
  }

  private void freeUnmapped() {
    for (Deferred memory : takeUnmapped()) {
      try {
        api.free(memory.address);
      } catch (DeviceException e) {
        log.warn("freeing memory that was closed before: {}", e.getMessage());
      }
    }
  }

  private synchronized List<Deferred> takeUnmapped() {
    List<Deferred> found = new ArrayList<>();
    for (Iterator<Deferred> rest = deferred.iterator(); rest.hasNext(); ) {
      Deferred memory = rest.next();
      if (memory.unmapped.getAsBoolean()) {
        found.add(memory);
        rest.remove();
      }
    }
    return found;
  }
}
