package org.gradientsync.internal.collectives;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.spi.AbstractDeviceBuffer;
import org.gradientsync.spi.Resources;

/**
 * The plans that a reducer has made for buffers. A plan is kept until its buffer is closed, or
 * until {@value #MAX} other buffers were used since. A lookup allocates nothing.
 *
 * @param <P> a plan
 */
public final class PlanCache<P> implements AutoCloseable {
  private static final int MAX = 512;

  private final Object lock;
  private final Consumer<P> end;
  private final Map<DeviceBuffer, Entry<P>> entries = new LinkedHashMap<>(64, 0.75f, true);

  private record Entry<P>(P plan, Runnable forget) {}

  /**
   * @param lock held by the reducer while it uses plans; taken to close a plan when its buffer is
   *     closed
   * @param end closes a plan
   */
  public PlanCache(Object lock, Consumer<P> end) {
    this.lock = lock;
    this.end = end;
  }

  /** The plan of a buffer, or null. */
  public P get(DeviceBuffer buffer) {
    Entry<P> entry = entries.get(buffer);
    return entry == null ? null : entry.plan();
  }

  /** Adds the plan of a buffer that has none. */
  public void put(AbstractDeviceBuffer buffer, P plan) {
    Entry<P> entry = new Entry<>(plan, () -> forget(buffer));
    buffer.onClose(entry.forget());
    entries.put(buffer, entry);
    if (entries.size() > MAX) {
      Iterator<DeviceBuffer> eldest = entries.keySet().iterator();
      forget(eldest.next());
    }
  }

  /** Closes the plan of a buffer, if it has one. */
  public void forget(DeviceBuffer buffer) {
    synchronized (lock) {
      Entry<P> entry = entries.remove(buffer);
      if (entry != null) {
        ((AbstractDeviceBuffer) buffer).removeCloseListener(entry.forget());
        end.accept(entry.plan());
      }
    }
  }

  /** Closes all plans. */
  @Override
  public void close() {
    List<AutoCloseable> all = new ArrayList<>();
    entries.keySet().forEach(buffer -> all.add(() -> forget(buffer)));
    Resources.closeAll(all);
  }
}
