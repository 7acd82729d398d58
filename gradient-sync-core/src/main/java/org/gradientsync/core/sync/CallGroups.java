package org.gradientsync.core.sync;

import java.util.ArrayList;
import java.util.List;
import org.gradientsync.spi.BackendDevice;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.RankGroup;
import org.gradientsync.spi.Reducer;
import org.gradientsync.spi.Resources;

/**
 * The prepared groups of a sync. A group is kept until one of its buffers is closed, or until
 * {@value #MAX} others were used since. The memory of a group that was captured into a graph stays.
 */
final class CallGroups implements AutoCloseable {
  private static final int MAX = 16;

  private final RankGroup ranks;
  private final BackendDevice device;
  private final Reducer reducer;
  private final List<CallGroup> groups = new ArrayList<>(); // the last used one last

  /** No longer used, but their memory may be in the caller's graphs. */
  private final List<CallGroup> captured = new ArrayList<>();

  /**
   * @param ranks the lock that is held while groups are used; taken when a buffer of a group is
   *     closed
   */
  CallGroups(RankGroup ranks, BackendDevice device, Reducer reducer) {
    this.ranks = ranks;
    this.device = device;
    this.reducer = reducer;
  }

  /** The group of these calls, made if there is none. The caller holds the lock. */
  CallGroup of(List<CollectiveCall> calls) {
    for (int i = groups.size() - 1; i >= 0; i--) {
      CallGroup group = groups.get(i);
      if (group.isOf(calls)) {
        groups.add(groups.remove(i));
        return group;
      }
    }
    CallGroup group = new CallGroup(calls, device, ranks, reducer);
    groups.add(group);
    group.onClose(() -> forget(group));
    if (groups.size() > MAX) {
      CallGroup oldest = groups.remove(0); // also if it is captured: all ranks forget the same one
      if (oldest.isCaptured()) {
        captured.add(oldest);
      } else {
        oldest.close();
      }
    }
    return group;
  }

  private void forget(CallGroup group) {
    synchronized (ranks) {
      if (groups.remove(group) || captured.remove(group)) {
        group.close();
      }
    }
  }

  @Override
  public void close() {
    List<CallGroup> all = new ArrayList<>(groups);
    all.addAll(captured);
    groups.clear();
    captured.clear();
    Resources.closeAll(all);
  }
}
