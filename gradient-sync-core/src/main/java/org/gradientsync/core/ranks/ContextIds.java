package org.gradientsync.core.ranks;

import java.util.BitSet;

/**
 * The tag ranges of a job that are in use on this rank. Each group has its own range, so that its
 * messages never match another group's. The ranks agree on the lowest range that is free on all of
 * them. Closing a group is local, so ranks may release a range at different times.
 */
public final class ContextIds {
  public static final int LIMIT = 1024; // the maximum number of open groups

  private final BitSet used = new BitSet(LIMIT);

  public ContextIds() {
    used.set(GroupKey.WORLD.context());
  }

  /** A copy of the ranges in use. */
  public synchronized BitSet used() {
    return (BitSet) used.clone();
  }

  /** Reserves a range. Returns false if it is in use. */
  public synchronized boolean tryReserve(int context) {
    boolean free = !used.get(context);
    used.set(context);
    return free;
  }

  public synchronized void release(int context) {
    used.clear(context);
  }
}
