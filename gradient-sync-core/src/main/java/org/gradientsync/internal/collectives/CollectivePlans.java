package org.gradientsync.internal.collectives;

import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.spi.AbstractDeviceBuffer;
import org.gradientsync.spi.Collective;
import org.gradientsync.spi.Resources;

/**
 * The plans that a reducer has made for collectives with an input and an output, and for messages.
 * A plan is kept until one of its buffers is closed, or until {@value #MAX} others were used since.
 * A lookup allocates nothing.
 *
 * @param <P> a plan
 */
public final class CollectivePlans<P extends AutoCloseable> implements AutoCloseable {
  /** How many plans are kept. */
  static final int MAX = 512;

  private final Object lock;
  private final Map<Key, Entry<P>> entries = new LinkedHashMap<>(64, 0.75f, true);
  private final Key lookup = new Key();

  /** What a plan is for. */
  private static final class Key {
    private Object kind;
    private DeviceBuffer in; // or null
    private DeviceBuffer out; // or null
    private int rank;

    Key set(Object newKind, DeviceBuffer newIn, DeviceBuffer newOut, int newRank) {
      kind = newKind;
      in = newIn;
      out = newOut;
      rank = newRank;
      return this;
    }

    @Override
    public boolean equals(Object object) {
      return object instanceof Key other
          && kind == other.kind
          && in == other.in
          && out == other.out
          && rank == other.rank;
    }

    @Override
    public int hashCode() {
      int hash = System.identityHashCode(in) * 31 + System.identityHashCode(out);
      return (hash * 31 + System.identityHashCode(kind)) * 31 + rank;
    }
  }

  private record Entry<P>(P plan, Runnable forget) {}

  /**
   * @param lock held by the reducer while it uses plans; taken to close a plan when a buffer is
   *     closed
   */
  public CollectivePlans(Object lock) {
    this.lock = lock;
  }

  /**
   * The plan of a call, or null.
   *
   * @param kind a {@link Collective}, or another constant
   * @param in the input, or null
   * @param out the output, or null
   * @param rank the root, or the other rank of a message
   */
  public P get(Object kind, DeviceBuffer in, DeviceBuffer out, int rank) {
    Entry<P> entry = entries.get(lookup.set(kind, in, out, rank));
    return entry == null ? null : entry.plan();
  }

  /** Adds the plan of a call that has none. */
  public void put(Object kind, DeviceBuffer in, DeviceBuffer out, int rank, P plan) {
    Key key = new Key().set(kind, in, out, rank);
    Entry<P> entry = new Entry<>(plan, () -> forget(key));
    for (DeviceBuffer buffer : buffers(key)) {
      ((AbstractDeviceBuffer) buffer).onClose(entry.forget());
    }
    entries.put(key, entry);
    if (entries.size() > MAX) {
      Iterator<Key> eldest = entries.keySet().iterator();
      forget(eldest.next());
    }
  }

  private static List<DeviceBuffer> buffers(Key key) {
    return key.in == null || key.in == key.out
        ? List.of(key.out)
        : key.out == null ? List.of(key.in) : List.of(key.in, key.out);
  }

  /** Closes the plan of a call, if it has one. */
  public void forget(Object kind, DeviceBuffer in, DeviceBuffer out, int rank) {
    forget(new Key().set(kind, in, out, rank));
  }

  private void forget(Key key) {
    synchronized (lock) {
      Entry<P> entry = entries.remove(key);
      if (entry != null) {
        for (DeviceBuffer buffer : buffers(key)) {
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
            .<AutoCloseable>map(key -> () -> forget(key))
            .toList());
  }
}
