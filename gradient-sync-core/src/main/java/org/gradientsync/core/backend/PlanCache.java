package org.gradientsync.core.backend;

import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.spi.AbstractDeviceBuffer;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.Resources;

/**
 * The plans that a reducer has made for calls. A plan is kept until one of its call's buffers is
 * closed, or until {@value #MAX} others were used since. A lookup allocates nothing.
 *
 * @param <P> a plan
 */
public final class PlanCache<P extends AutoCloseable> implements AutoCloseable {
  /** How many plans are kept. */
  public static final int MAX = 512;

  private final Object lock;
  private final Map<CollectiveCall, Entry<P>> entries = new LinkedHashMap<>(64, 0.75f, true);

  private record Entry<P>(P plan, Runnable forget) {}

  /**
   * @param lock held by the reducer while it uses plans; taken to close a plan when a buffer is
   *     closed
   */
  public PlanCache(Object lock) {
    this.lock = lock;
  }

  /**
   * {@return the plan of a call, which this cache still owns, or null}
   *
   * @param call may be changed afterwards
   */
  public P get(CollectiveCall call) {
    Entry<P> entry = entries.get(call);
    return entry == null ? null : entry.plan();
  }

  /**
   * Adds the plan of a call that has none.
   *
   * @param call is copied
   * @param plan is closed by this cache
   */
  public void put(CollectiveCall call, P plan) {
    CollectiveCall key = call.copy();
    Entry<P> entry = new Entry<>(plan, () -> forget(key));
    for (DeviceBuffer buffer : buffers(key)) {
      ((AbstractDeviceBuffer) buffer).onClose(entry.forget());
    }
    entries.put(key, entry);
    if (entries.size() > MAX) {
      Iterator<CollectiveCall> eldest = entries.keySet().iterator();
      forget(eldest.next());
    }
  }

  private static List<DeviceBuffer> buffers(CollectiveCall call) {
    return call.in() == null || call.out() == null || call.in() == call.out()
        ? List.of(call.buffer())
        : List.of(call.in(), call.out());
  }

  /**
   * Closes the plan of a call, if it has one.
   *
   * @param call the call whose plan goes
   */
  public void forget(CollectiveCall call) {
    synchronized (lock) {
      Entry<P> entry = entries.remove(call);
      if (entry != null) {
        for (DeviceBuffer buffer : buffers(call)) {
          ((AbstractDeviceBuffer) buffer).removeCloseListener(entry.forget());
        }
        Resources.closeAll(entry.plan());
      }
    }
  }

  /** Closes all plans. */
  @Override
  public void close() {
    Resources.closeAll(
        List.copyOf(entries.keySet()).stream()
            .<AutoCloseable>map(call -> () -> forget(call))
            .toList());
  }
}
