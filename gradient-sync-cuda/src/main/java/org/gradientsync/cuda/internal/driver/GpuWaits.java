package org.gradientsync.cuda.internal.driver;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.locks.LockSupport;
import jcuda.driver.CUcontext;
import jcuda.driver.CUevent;
import jcuda.driver.CUstream;
import org.gradientsync.DeviceException;
import org.gradientsync.GradientSyncException;
import org.gradientsync.spi.Resources;

/** Makes the host wait for one GPU, and calls {@link DeviceWatch}es meanwhile. */
public final class GpuWaits {
  /** The number of polls before the thread yields or sleeps between them. */
  private static final int SPINS = 1000;

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

  /** Calls {@link DeviceWatch#closes}. */
  public void beforeClose(CUstream closing) {
    List<AutoCloseable> all = new ArrayList<>();
    watches.forEach(w -> all.add(() -> w.closes(closing)));
    Resources.closeAll(all);
  }

  /**
   * Waits for an event or, if that is null, for a stream. Without watches, the driver waits. With
   * watches, this thread polls.
   */
  public void await(CUstream stream, CUevent event) {
    api.useContext(context);
    if (!watches.isEmpty()) {
      poll(stream, event);
    } else {
      awaitByDriver(stream, event);
    }
    watches.forEach(DeviceWatch::afterWaiting); // without an iterator, which would be garbage
  }

  /**
   * Waits as {@link #await} does, before resources are released: the work is done when this
   * returns, and also when it throws. If watches throw, it waits on and then throws the first of
   * their exceptions.
   */
  public void awaitEnd(CUstream stream, CUevent event) {
    api.useContext(context);
    if (watches.isEmpty()) {
      awaitByDriver(stream, event);
      return;
    }
    GradientSyncException first = null;
    boolean done = false;
    while (!done) {
      try {
        poll(stream, event);
        done = true;
      } catch (DeviceException e) {
        throw e; // the GPU no longer works
      } catch (GradientSyncException e) {
        first = first == null ? e : first;
      }
    }
    if (first != null) {
      throw first;
    }
  }

  private void awaitByDriver(CUstream stream, CUevent event) {
    if (event == null) {
      api.awaitStream(stream);
    } else {
      api.awaitEvent(event);
    }
  }

  private void poll(CUstream stream, CUevent event) {
    long start = 0;
    long checked = 0;
    for (int polls = 0; !(event == null ? api.isDone(stream) : api.isDone(event)); polls++) {
      if (polls < SPINS) {
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
