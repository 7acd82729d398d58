package org.gradientsync.internal.sync;

import java.util.ArrayList;
import java.util.List;
import org.gradientsync.spi.BackendDevice;
import org.gradientsync.spi.Resources;

/**
 * The prepared groups of a sync. A group is kept until one of its buffers is closed, or until
 * {@value #MAX} others were used since.
 */
final class CallGroups implements AutoCloseable {
  private static final int MAX = 16;

  private final Object lock;
  private final BackendDevice device;
  private final boolean packs;
  private final List<CallGroup> groups = new ArrayList<>(); // the last used one last

  /**
   * @param lock held while groups are used; taken when a buffer of a group is closed
   * @param packs whether small all-reduces are packed
   */
  CallGroups(Object lock, BackendDevice device, boolean packs) {
    this.lock = lock;
    this.device = device;
    this.packs = packs;
  }

  /** The group of these calls, made if there is none. The caller holds the lock. */
  CallGroup of(List<RecordedCall> calls) {
    for (int i = groups.size() - 1; i >= 0; i--) {
      CallGroup group = groups.get(i);
      if (group.isOf(calls)) {
        groups.add(groups.remove(i));
        return group;
      }
    }
    CallGroup group = new CallGroup(calls, device, packs);
    groups.add(group);
    group.onClose(() -> forget(group));
    if (groups.size() > MAX) {
      forget(groups.get(0));
    }
    return group;
  }

  private void forget(CallGroup group) {
    synchronized (lock) {
      if (groups.remove(group)) {
        group.close();
      }
    }
  }

  @Override
  public void close() {
    List<CallGroup> all = List.copyOf(groups);
    groups.clear();
    Resources.closeAll(all);
  }
}
