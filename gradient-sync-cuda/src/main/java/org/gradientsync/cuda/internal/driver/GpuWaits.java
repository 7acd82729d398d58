package org.gradientsync.cuda.internal.driver;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.locks.LockSupport;
import jcuda.driver.CUcontext;
import jcuda.driver.CUevent;
import jcuda.driver.CUstream;
import org.gradientsync.GradientSyncException;
import org.gradientsync.cuda.CudaException;
import org.gradientsync.spi.Resources;

/** The host's waits for one GPU, during which {@link DeviceWatch}es are called. */
public final class GpuWaits {
  private static final int POLLS = 1000;
  private static final long CHECK_NANOS = 100_000_000;

  private final CudaApi api;
  private final CUcontext context;
  private final List<DeviceWatch> watches = new CopyOnWriteArrayList<>();

  GpuWaits(CudaApi api, CUcontext context) {
    this.api = api;
    this.context = context;
  }

  public void watch(DeviceWatch watch) {
    watches.add(watch);
  }

  public void unwatch(DeviceWatch watch) {
    watches.remove(watch);
  }

  /** To be called before a stream is closed. */
  public void beforeClose(CUstream closing) {
    List<AutoCloseable> all = new ArrayList<>();
    watches.forEach(w -> all.add(() -> w.closes(closing)));
    Resources.closeAll(all);
  }

  /**
   * Waits for an event, or for a stream where that is null. Where nobody wants to look around, the
   * driver waits; otherwise this thread asks it again and again, as the driver would.
   */
  public void await(CUstream of, CUevent event) {
    api.useContext(context);
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
  public void awaitEnd(CUstream of, CUevent event) {
    api.useContext(context);
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
}
