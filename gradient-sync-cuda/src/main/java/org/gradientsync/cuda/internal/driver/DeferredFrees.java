package org.gradientsync.cuda.internal.driver;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.function.BooleanSupplier;
import jcuda.driver.CUcontext;
import org.gradientsync.DeviceException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * GPU memory that is closed here, but that other ranks still have mapped. Later allocations, and
 * closing the device, free the memory that those ranks have unmapped by then. So closing a buffer
 * does not wait for other ranks.
 */
public final class DeferredFrees {
  private static final Logger log = LoggerFactory.getLogger(DeferredFrees.class);
  private static final List<Deferred> deferred = new ArrayList<>();

  private record Deferred(CudaApi api, CUcontext context, long address, BooleanSupplier unmapped) {}

  private DeferredFrees() {}

  static synchronized void add(
      CudaApi api, CUcontext context, long address, BooleanSupplier unmapped) {
    deferred.add(new Deferred(api, context, address, unmapped));
  }

  /** Frees one GPU's memory that other ranks have unmapped. The GPU's context is current. */
  public static void free(CudaApi api, CUcontext context) {
    for (Deferred memory : takeUnmapped(api, context)) {
      try {
        api.free(memory.address); // may wait for the GPU, so outside the lock
      } catch (DeviceException e) {
        log.warn("freeing memory that other ranks had mapped: {}", e.getMessage());
      }
    }
  }

  private static synchronized List<Deferred> takeUnmapped(CudaApi api, CUcontext context) {
    List<Deferred> found = new ArrayList<>();
    for (Iterator<Deferred> all = deferred.iterator(); all.hasNext(); ) {
      Deferred d = all.next();
      if (d.api == api && d.context.equals(context) && d.unmapped.getAsBoolean()) {
        found.add(d);
        all.remove();
      }
    }
    return found;
  }
}
