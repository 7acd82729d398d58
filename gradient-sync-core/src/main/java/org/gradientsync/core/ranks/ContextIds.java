package org.gradientsync.core.ranks;

import java.util.BitSet;

/**
 * The tag ranges of a job that are in use on this rank. Each group has its own range, so that its
 * messages never match another group's. The ranks agree on the lowest range that is free on all of
 * them. Closing a group is local, so ranks may release a range at different times.
 */
public final class ContextIds {
  /** The maximum number of open groups. */
  public static final int LIMIT = 1024;

  /** The tag range of the world group. */
  public static final int WORLD = 0;

  private final BitSet used = new BitSet(LIMIT);
  private long generation;

  public ContextIds() {
    used.set(WORLD);
  }

  /** One bit for each range in use, to be sent to the other ranks. */
  public synchronized long[] used() {
    long[] words = new long[LIMIT / Long.SIZE];
    long[] set = used.toLongArray();
    System.arraycopy(set, 0, words, 0, set.length);
    return words;
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

  /** A number that no earlier group of this rank had. */
  public synchronized long generation() {
    return generation;
  }

  public synchronized void advanceTo(long newest) {
    generation = Math.max(generation, newest);
  }
}
