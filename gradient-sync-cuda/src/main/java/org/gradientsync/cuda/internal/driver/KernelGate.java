package org.gradientsync.cuda.internal.driver;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import jcuda.driver.CUcontext;

/**
 * Keeps calls of the driver that wait for all kernels on a GPU, as those that free memory or load
 * kernels may do, apart from the kernels of syncs, which wait for the same call on other ranks.
 * Otherwise two ranks with two syncs could wait for each other: rank 0 calls the first sync and
 * frees memory, and rank 1 calls the second sync and frees memory. Each waits for its own kernel,
 * and each kernel waits for a call that the other rank makes after that. So where several syncs use
 * a GPU, such calls are made while none of their kernels runs, and no kernel is enqueued meanwhile.
 */
public final class KernelGate {
  private static final Map<Key, KernelGate> all = new ConcurrentHashMap<>();

  /** For how long kernels are held up at a time, so that those that run can end. */
  private static final long HOLD_NANOS = 1_000_000;

  /** After that, the driver waits. */
  private static final long PATIENCE_NANOS = 1_000_000_000;

  private final List<BooleanSupplier> syncs = new ArrayList<>();
  private int holders; // threads
  private volatile boolean closed;

  private record Key(CudaApi api, CUcontext context) {}

  private KernelGate() {}

  /** That of a GPU, for all devices of this process that use it. */
  static KernelGate of(CudaApi api, CUcontext context) {
    return all.computeIfAbsent(new Key(api, context), key -> new KernelGate());
  }

  /**
   * Adds a sync.
   *
   * @param isIdle whether none of its kernels runs or is being enqueued; any thread may call it
   */
  public synchronized void add(BooleanSupplier isIdle) {
    syncs.add(isIdle);
  }

  /** Removes it. Nobody calls it any more when this returns. */
  public synchronized void remove(BooleanSupplier isIdle) {
    syncs.remove(isIdle);
  }

  /**
   * Waits while another thread holds up kernels. Called before a kernel is enqueued, when its sync
   * no longer shows itself as idle. Allocates nothing.
   */
  public void pass() {
    while (closed) {
      Thread.yield();
    }
  }

  /**
   * Makes calls of the driver, if all syncs are idle or there is at most one. Returns whether it
   * has made them.
   */
  boolean tryRun(Runnable calls) {
    return tryRun(calls, 0);
  }

  /** Makes calls of the driver once all syncs are idle, or after a second. */
  public void run(Runnable calls) {
    long start = System.nanoTime();
    do {
      if (tryRun(calls, HOLD_NANOS)) {
        return;
      }
      LockSupport.parkNanos(HOLD_NANOS); // others go on meanwhile
    } while (System.nanoTime() - start < PATIENCE_NANOS);
    calls.run();
  }

  private boolean tryRun(Runnable calls, long patience) {
    if (!close()) {
      calls.run();
      return true;
    }
    try {
      long start = System.nanoTime();
      while (!areIdle()) {
        if (System.nanoTime() - start >= patience) {
          return false;
        }
        Thread.yield();
      }
      calls.run(); // outside the lock
      return true;
    } finally {
      open();
    }
  }

  /** Returns whether there is more than one sync. */
  private synchronized boolean close() {
    if (syncs.size() < 2) {
      return false;
    }
    holders++;
    closed = true;
    return true;
  }

  private synchronized void open() {
    holders--;
    closed = holders > 0;
  }

  private synchronized boolean areIdle() {
    return syncs.stream().allMatch(BooleanSupplier::getAsBoolean);
  }
}
